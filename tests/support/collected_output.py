"""Collects all output of a program, to search it for secrets."""

from collections.abc import Iterable

#: Characters of the output that a message shows before a secret and from its start.
BEFORE, AFTER = 160, 60


class CollectedOutput:
    """The collected output, by place."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, place: str, text: str) -> None:
        self.texts[place] = self.texts.get(place, "") + "\n" + text

    def find(self, secrets: Iterable[tuple[str, str]], *, ignore_case: bool = False) -> list[str]:
        """Return a message for each secret in each place. secrets: names and texts."""
        messages = []
        for name, secret in secrets:
            wanted = secret.lower() if ignore_case else secret
            for place, text in self.texts.items():
                at = (text.lower() if ignore_case else text).find(wanted)
                if at >= 0:
                    context = text[max(at - BEFORE, 0) : at + AFTER]
                    messages.append(f"{name} in {place}: ...{context}")
        return messages
