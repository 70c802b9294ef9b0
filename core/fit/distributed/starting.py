"""Where nodes are started."""

from typing import ClassVar

from adapt.core.fit.distributed.group_peer import GroupDeployment, GroupPeer
from adapt.core.fit.distributed.peer import Deployment, Peer


class Here:
    """Starts nodes in this process.

    Attributes:
        apart: Whether nodes are elsewhere, so that all they know of each other are messages.
    """

    apart: ClassVar[bool] = False

    def peer(self, deployment: Deployment, run: int) -> Peer:
        """A node of D-FIT, given the number of its start."""
        return Peer(deployment, run)

    def group(self, deployment: GroupDeployment, run: int) -> GroupPeer:
        """A group of D-FIT with cuts, likewise."""
        return GroupPeer(deployment, run)
