"""Secrets in shown or kept texts: passwords, tokens, signatures of URLs."""

import re

_NAME = (
    r"[\w.-]*(?:secret|passw(?:or)?d|pwd|passphrase|token|credential|signature|jaas\.config"
    r"|(?:access|api|account|private|storage|shared)[._-]?key)[\w.-]*"
    r"|(?:spark|hadoop|fs|ssl|sasl)\.[\w.-]*key[\w.-]*"
    r"|(?<=[?&;])(?:sig|key|sas|auth)"
)
_VALUE = r"""\\?"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&;,"'<>)]+"""
_SECRETS = (
    (re.compile(r"(?i)(jaas\.config[\"']?\s*[=:]).*"), r"\1..."),
    (re.compile(r"(://)[^\s/:@\"']*:(?!\d+[/,\s\"'])[^\s\"']*@|(\bjdbc:oracle:\w+:)[^\s@]*@"), r"\1\2...@"),
    (re.compile(r"(?<!abfs)(?<!abfss)(?<!hdfs)(?<!wasb)(?<!wasbs)(://)[^\s/?#\"'@]*@"), r"\1...@"),
    (re.compile(rf"(?i)((?:{_NAME})(?:[\"']\s*:\s*|[\"']?\s*=\s?|:(?!//)))(?:{_VALUE})"), r"\1..."),
)
_WORD = re.compile(rf"(?is)((?:--[\w-]+=)?(?:{_NAME})=).+")


def redacted(text: str) -> str:
    """A text with `...` in the place of each secret."""
    for secret, shown in _SECRETS:
        text = secret.sub(shown, text)
    return text


def redacted_word(word: str) -> str:
    """A command-line word; its secret value ends with it."""
    return redacted(_WORD.sub(r"\1...", word))
