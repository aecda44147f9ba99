"""OS::Heat::RandomString: a random string with a minimum number of characters of each class."""

import random
import string
from collections.abc import Mapping

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, InternalType, Outcome
from engine.words import Json

SEQUENCES: Mapping[str, str] = {
    "lettersdigits": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase,
    "digits": string.digits,
    "hexdigits": string.digits + "ABCDEF",
    "octdigits": string.octdigits,
}
_CLASS = Constraint("allowed_values", allowed=tuple(SEQUENCES))
_LENGTH = Constraint("range", min=1, max=512)
DEFAULT_LENGTH = 32
_DEFAULT_CLASSES: list[Json] = [{"class": "lettersdigits", "min": 1}]


class RandomString(InternalType):
    schema = TypeSchema(
        "OS::Heat::RandomString",
        description="A random string, such as a password. Changing any property creates a new one.",
        properties={
            "length": Property(
                Kind.INTEGER, "Length.", default=DEFAULT_LENGTH, constraints=(_LENGTH,)
            ),
            "sequence": Property(
                Kind.STRING,
                "One class for all characters (deprecated); overrides character_classes.",
                constraints=(_CLASS,),
            ),
            "character_classes": Property(
                Kind.LIST,
                "Character classes, with the minimum number of each.",
                default=_DEFAULT_CLASSES,
                items=Property(
                    Kind.MAP,
                    fields={
                        "class": Property(
                            Kind.STRING, default="lettersdigits", constraints=(_CLASS,)
                        ),
                        "min": Property(Kind.INTEGER, default=1, constraints=(_LENGTH,)),
                    },
                ),
            ),
            "character_sequences": Property(
                Kind.LIST,
                "Character sequences, with the minimum number of each.",
                items=Property(
                    Kind.MAP,
                    fields={
                        "sequence": Property(
                            Kind.STRING,
                            required=True,
                            constraints=(Constraint("length", min=1, max=512),),
                        ),
                        "min": Property(Kind.INTEGER, default=1, constraints=(_LENGTH,)),
                    },
                ),
            ),
            "salt": Property(Kind.STRING, "Change it to get another string."),
        },
        attributes={"value": Attribute(Kind.STRING, "The string.", secret=True)},
    )

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness

    def create(self, call: Call) -> Outcome:
        wrong = _too_short(call.properties)
        if wrong:
            return Failed(" ".join(wrong))
        text = self._text(call.properties)
        return Done(call.own_name, {"value": text}, {"value": text})

    def adopt(self, call: Call) -> Outcome:
        text = call.data.get("value")
        if not isinstance(text, str):
            reason = "the adopted resource has no value in its data"
            return Failed(reason, call.physical_id, public_reason=reason)
        return Done(call.physical_id, {"value": text}, {"value": text})

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("value", resource_name))

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        wrong = _too_short(properties)
        if wrong:
            findings.add(f"{place}.length", *wrong)

    def _text(self, properties: Mapping[str, Json]) -> str:
        sources = _sources(properties)
        characters = [
            self._randomness.choice(one) for one, min_count in sources for _ in range(min_count)
        ]
        every = "".join(one for one, _ in sources)
        missing = _length(properties) - len(characters)
        characters += [self._randomness.choice(every) for _ in range(missing)]
        self._randomness.shuffle(characters)
        return "".join(characters)


def _length(properties: Mapping[str, Json]) -> int:
    return int(properties.get("length") or DEFAULT_LENGTH)


def _too_short(properties: Mapping[str, Json]) -> tuple[str, str] | None:
    """(reason, remedy) if the length is less than the sum of the minimum numbers; else None."""
    length, min_count = _length(properties), sum(min_count for _, min_count in _sources(properties))
    if length >= min_count:
        return None
    return (
        f"Length {length} is less than the {min_count} characters that are required.",
        f"Set a length of at least {min_count}, or require fewer characters of each class.",
    )


def _sources(properties: Mapping[str, Json]) -> list[tuple[str, int]]:
    """(characters to choose from, minimum number of them) for each class or sequence."""
    sequences: list[Json] = properties.get("character_sequences") or []
    classes: list[Json] | None = properties.get("character_classes")
    if classes is None:
        classes = _DEFAULT_CLASSES
    if properties.get("sequence"):
        classes = [{"class": properties["sequence"]}]
    if not sequences and not classes:
        classes = _DEFAULT_CLASSES
    by_class = [
        (SEQUENCES[one.get("class") or "lettersdigits"], int(one.get("min") or 1))
        for one in classes
    ]
    return by_class + [(one["sequence"], int(one.get("min") or 1)) for one in sequences]
