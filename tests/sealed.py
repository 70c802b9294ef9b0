"""Plans that a test changes."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def resealed(plan: Mapping[str, Any]) -> str:
    """The text of a plan with the seal of its content."""
    told = {name: part for name, part in plan.items() if name != "seal"}
    return json.dumps(told | {"seal": hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()})
