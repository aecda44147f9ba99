"""Taint: which attributes of a resource are secret, because of what the resource was made from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote, unquote_plus

from engine.hot.expressions.masking import MASK, contains_mask
from engine.hot.expressions.member_attributes import EVERY_ATTRIBUTE, MEMBERS_ENTRY, REFERENCE
from engine.hot.expressions.secret_leaks import leaks_secret, secret_texts
from engine.hot.schema.properties import PUBLIC_SECRET, has_hidden, public_secrets
from engine.hot.schema.type_schema import TypeSchema
from engine.store.advance import Work
from engine.types.contract import Confirm, Done, Failed, Outcome, Stopped, Wait
from engine.types.text_cleaning import mask_secrets
from engine.words import VISITS, Json, Operation
from engine.work.prepare import Prepared, call_of
from engine.work.visible_properties import kept_view, masked


def secret_of(prepared: Prepared, done: Done, reference: str, shown: Json) -> list[str]:
    """What is secret of a resource after an operation, as its row keeps it.

    shown: the properties with masks (`kept_view`); None: no secret is in them.
    """
    found = _secret_now(prepared, done, reference, shown)
    return sorted(found.union(_left(prepared.work, done.attributes)))


def _secret_now(prepared: Prepared, done: Done, reference: str, shown: Json) -> set[str]:
    """What the type declares, and what follows from the properties."""
    work, schema = prepared.work, prepared.type.schema
    found = {REFERENCE} if schema.secret_reference or schema.has_secrets() else set[str]()
    found.update(_declared(done.attributes, schema))
    if (done.attributes.get(MEMBERS_ENTRY) or {}).get("secret"):
        found.add(MEMBERS_ENTRY)  # what of which member is kept in there
    if done.secret is not None:
        found.update(done.secret)
    elif is_tainted(prepared, shown):
        found.update(_derived(done.attributes, schema))
        if reference not in (work.name, done.physical_id):
            found.add(REFERENCE)
    return found


def secret_unchanged(prepared: Prepared, shown: Json) -> list[str]:
    """The same of a resource that stays as it is, while its definition may hide more or less."""
    work = prepared.work
    inside = (work.secret or ()) if prepared.type.has_nested_stack else None
    done = Done(work.physical_id, work.attributes or {}, work.data or {}, secret=inside)
    reference = str(work.reference or work.name)
    found = _secret_now(prepared, done, reference, shown)
    if not is_tainted(prepared, work.shown):  # what is secret was left by an earlier update
        found.update(_left(work, done.attributes))
    return sorted(found)


def is_tainted(prepared: Prepared, shown: Json) -> bool:
    """Whether the resource is made from anything secret."""
    schema = prepared.type.schema
    if shown is None and not has_hidden(schema.properties):
        return False
    return contains_mask(masked(prepared.properties if shown is None else shown, schema))


#: Shown in place of a reason that may contain a secret, or a value computed from one.
WITHHELD_REASON = "The reason is not shown because the resource depends on a secret."
WITHHELD_DETAILS = "details are not shown because the resource depends on a secret"


def depends_on_secret(prepared: Prepared, shown: Json) -> bool:
    """Return whether a message of the type may contain something computed from a secret: the
    properties contain one or did before, or an attribute is secret.
    """
    work = prepared.work
    before = work.shown is not None and contains_mask(work.shown)
    return before or bool(work.secret) or is_tainted(prepared, shown)


def redacted(prepared: Prepared, outcome: Outcome, shown: Json) -> Outcome:
    """Return the outcome as people may see it.

    A text computed from a secret cannot be recognized, so only `public_reason` and `public_seen`
    are shown of a resource that depends on a secret. Its secrets are masked there, too.
    """
    if not depends_on_secret(prepared, shown):
        return outcome
    hidden = _secret_texts(prepared, shown)
    if isinstance(outcome, Done | Wait | Failed | Stopped):
        return replace(outcome, reason=mask_secrets(_public_reason(outcome), hidden))
    if isinstance(outcome, Confirm):
        return replace(outcome, seen=_without(_public_seen(outcome), hidden))
    return outcome


def public_secret_reason(prepared: Prepared) -> str:
    """Return why the operation must not begin: a public property contains a secret. Else ""."""
    schema = prepared.type.schema
    applies = prepared.change.operation in (Operation.CREATE, Operation.REPLACE, Operation.UPDATE)
    if not applies or not any(one.public for one in schema.properties.values()):
        return ""
    names = public_secrets(schema, prepared.properties, kept_view(prepared))
    reason, remedy = PUBLIC_SECRET
    return "; ".join(f"properties.{name}: {reason}. {remedy}" for name in names)


#: Reason of an operation that returned a physical ID with a secret.
REFUSED_ID = (
    "the physical ID contains a secret value, which readers would see; the ID is not stored and the"
    " physical resource may exist. Find and delete it in its service, and use a physical ID that"
    " contains no secret"
)


def without_secret_id(prepared: Prepared, outcome: Outcome, shown: Json) -> Outcome:
    """Return Failed in place of a success whose new physical ID contains a secret of the
    properties, and remove such an ID from a failure.
    """
    if not isinstance(outcome, Done | Failed | Stopped):
        return outcome
    if not _is_secret_id(prepared, outcome.physical_id, shown):
        return outcome
    if isinstance(outcome, Done):
        return Failed(REFUSED_ID, None, outcome.data, public_reason=REFUSED_ID)
    public = f"{outcome.public_reason}; {REFUSED_ID}" if outcome.public_reason else REFUSED_ID
    reason = f"{outcome.reason}; {REFUSED_ID}"
    return replace(outcome, physical_id=None, reason=reason, public_reason=public)


def _is_secret_id(prepared: Prepared, physical_id: str | None, shown: Json) -> bool:
    work = prepared.work
    if physical_id is None or physical_id == work.physical_id:  # already stored
        return False
    hidden = _secret_texts(prepared, shown)
    if work.shown is not None:
        hidden |= _texts_behind(work.properties or {}, work.shown)
    # Decoding covers every way to encode a secret in a URL.
    forms = [physical_id, unquote(physical_id), unquote_plus(physical_id)]
    if not leaks_secret(forms, hidden):
        return False
    call = call_of(work, Operation(work.operation), prepared.properties, frozenset())
    return physical_id != call.own_name  # made of public names, which may equal a secret


def _public_reason(outcome: Done | Wait | Failed | Stopped) -> str:
    if outcome.public_reason == outcome.reason:
        return outcome.reason
    public = outcome.public_reason
    return f"{public} ({WITHHELD_DETAILS})" if public else WITHHELD_REASON


def _public_seen(outcome: Confirm) -> Mapping[str, Json]:
    if outcome.public_seen == outcome.seen:
        return outcome.seen
    return {"withheld": WITHHELD_DETAILS, **outcome.public_seen}


def _secret_texts(prepared: Prepared, shown: Json) -> set[str]:
    if not is_tainted(prepared, shown):
        return set()
    properties = prepared.properties
    seen = masked(properties if shown is None else shown, prepared.type.schema)
    return _texts_behind(properties, seen)


def _texts_behind(properties: Mapping[str, Json], seen: Mapping[str, Json]) -> set[str]:
    """Return the secrets that masks in `seen` stand for, as they are and as messages quote them."""
    found: set[str] = set()
    for name, view in seen.items():
        if contains_mask(view):
            for text in secret_texts(properties.get(name), view):
                found.update((text, _masked_part(text, view)))
    return found | {form for text in found for form in _escaped(text)}


def _escaped(text: str) -> Iterator[str]:
    """A text as messages quote it: in Python's and in JSON's notation."""
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _masked_part(text: str, view: Json) -> str:
    """What the mask stands for in a text of which people see the rest."""
    if not isinstance(view, str):
        return text
    before, _, after = view.partition(MASK)
    around = text.startswith(before) and text.endswith(after)
    return text[len(before) : len(text) - len(after)] if around else text


def _without(value: Json, hidden: set[str]) -> Json:
    if isinstance(value, str):
        return mask_secrets(value, hidden)
    if isinstance(value, Mapping):
        return {_without(key, hidden): _without(item, hidden) for key, item in value.items()}
    return [_without(item, hidden) for item in value] if isinstance(value, list) else value


def _declared(attributes: Mapping[str, Json], schema: TypeSchema) -> Iterator[str]:
    return (name for name, one in schema.attributes.items() if one.secret and name in attributes)


def _derived(attributes: Mapping[str, Json], schema: TypeSchema) -> Iterator[str]:
    """Attributes that may repeat what is among the properties. What members have is kept by
    member."""
    for name in attributes:
        known = schema.attributes.get(name)
        if name != MEMBERS_ENTRY and not (known is not None and known.public):
            yield name


def _left(work: Work, attributes: Mapping[str, Json]) -> Iterator[str]:
    """Secrets that the resource had before and the operation has left as they were."""
    in_place = work.operation in VISITS or work.operation == Operation.UPDATE
    before, secret = work.attributes or {}, (work.secret or ()) if in_place else ()
    for name in before if EVERY_ATTRIBUTE in secret else secret:
        if name in attributes and attributes[name] == before.get(name):
            yield name
