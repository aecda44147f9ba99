"""Determines which attributes and texts of a resource are secret because a property is secret."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote, unquote_plus

from engine.hot.expressions.masking import MASK, contains_mask, leaks_secret, secret_texts
from engine.hot.expressions.member_attributes import EVERY_ATTRIBUTE, MEMBERS_ENTRY, REFERENCE
from engine.hot.schema.properties import PUBLIC_SECRET, public_secrets
from engine.hot.schema.type_schema import TypeSchema
from engine.store.traversals.advance import Work
from engine.types.contract import Confirm, Done, Failed, Outcome, Stopped, Wait
from engine.types.text_cleaning import mask_secrets
from engine.words import IN_PLACE_OPERATIONS, Json, Operation
from engine.work.nodes.prepare import PreparedNode, call_of
from engine.work.nodes.visible_properties import keeps_secrets, kept_view, mask_properties


def secret_of(prepared: PreparedNode, done: Done, reference: str, shown: Json) -> list[str]:
    """Return the names of the secret values of a resource after an operation, as stored.

    shown: the properties with masks (`kept_view`); None: no secret is in them.
    """
    if done.secret is None and not keeps_secrets(prepared):
        return []
    found = _secret_now(prepared, done, reference, shown)
    return sorted(found.union(_unchanged_secrets(prepared.work, done.attributes)))


def _secret_now(prepared: PreparedNode, done: Done, reference: str, shown: Json) -> set[str]:
    """Return the names that the type declares secret, and those derived from secret properties."""
    work, schema = prepared.work, prepared.type.schema
    found = {REFERENCE} if schema.has_secret_reference() else set[str]()
    found.update(_declared_secrets(done.attributes, schema))
    if (done.attributes.get(MEMBERS_ENTRY) or {}).get("secret"):
        found.add(MEMBERS_ENTRY)  # it lists the secret values of each member
    if done.secret is not None:
        found.update(done.secret)
    elif is_tainted(prepared, shown):
        found.update(_derived_attributes(done.attributes, schema))
        if reference not in (work.name, done.physical_id):
            found.add(REFERENCE)
    return found


def secret_unchanged(prepared: PreparedNode, shown: Json) -> list[str]:
    """As `secret_of`, for an unchanged resource, whose definition may hide other values now."""
    work = prepared.work
    inside = (work.secret_attributes or ()) if prepared.type.has_nested_stack else None
    done = Done(work.physical_id, work.attributes or {}, work.data or {}, secret=inside)
    reference = str(work.reference or work.name)
    found = _secret_now(prepared, done, reference, shown)
    if not is_tainted(prepared, work.masked_properties):  # an earlier update left secret values
        found.update(_unchanged_secrets(work, done.attributes))
    return sorted(found)


def is_tainted(prepared: PreparedNode, shown: Json) -> bool:
    """Return whether a property of the resource is secret."""
    schema = prepared.type.schema
    if shown is None and not schema.hides:
        return False
    return contains_mask(mask_properties(prepared.properties if shown is None else shown, schema))


#: Shown in place of a reason that may contain a secret, or a value computed from one.
WITHHELD_REASON = "The reason is not shown because the resource depends on a secret."
WITHHELD_DETAILS = "details are not shown because the resource depends on a secret"


def depends_on_secret(prepared: PreparedNode, shown: Json) -> bool:
    """Return whether a message of the type may contain something computed from a secret: the
    properties contain one or did before, or an attribute is secret.
    """
    work = prepared.work
    before = work.masked_properties is not None and contains_mask(work.masked_properties)
    return before or bool(work.secret_attributes) or is_tainted(prepared, shown)


def redact(prepared: PreparedNode, outcome: Outcome, shown: Json) -> Outcome:
    """Return the outcome without secrets.

    A text that was computed from a secret cannot be recognized. So the outcome of a resource that
    depends on a secret contains only `public_reason` and `public_seen`, with secrets masked.
    """
    if not keeps_secrets(prepared) or not depends_on_secret(prepared, shown):
        return outcome
    hidden = _secret_texts(prepared, shown)
    if isinstance(outcome, Done | Wait | Failed | Stopped):
        return replace(outcome, reason=mask_secrets(_public_reason(outcome), hidden))
    if isinstance(outcome, Confirm):
        return replace(outcome, seen=_without(_public_seen(outcome), hidden))
    return outcome


def public_secret_reason(prepared: PreparedNode) -> str:
    """Return why the operation must not begin: a public property contains a secret. Else ""."""
    if not keeps_secrets(prepared):
        return ""
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


def without_secret_id(prepared: PreparedNode, outcome: Outcome, shown: Json) -> Outcome:
    """Return Failed in place of a success whose new physical ID contains a secret of the
    properties, and remove such an ID from a failure.
    """
    if not keeps_secrets(prepared) or not isinstance(outcome, Done | Failed | Stopped):
        return outcome
    if not _is_secret_id(prepared, outcome.physical_id, shown):
        return outcome
    if isinstance(outcome, Done):
        return Failed(REFUSED_ID, None, outcome.data, public_reason=REFUSED_ID)
    public = f"{outcome.public_reason}; {REFUSED_ID}" if outcome.public_reason else REFUSED_ID
    reason = f"{outcome.reason}; {REFUSED_ID}"
    return replace(outcome, physical_id=None, reason=reason, public_reason=public)


def _is_secret_id(prepared: PreparedNode, physical_id: str | None, shown: Json) -> bool:
    work = prepared.work
    if physical_id is None or physical_id == work.physical_id:  # already stored
        return False
    hidden = _secret_texts(prepared, shown)
    if work.masked_properties is not None:
        hidden |= _texts_behind(work.properties or {}, work.masked_properties)
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


def _secret_texts(prepared: PreparedNode, shown: Json) -> set[str]:
    if not is_tainted(prepared, shown):
        return set()
    properties = prepared.properties
    seen = mask_properties(properties if shown is None else shown, prepared.type.schema)
    return _texts_behind(properties, seen)


def _texts_behind(properties: Mapping[str, Json], seen: Mapping[str, Json]) -> set[str]:
    """Return the secrets that masks in `seen` stand for, as they are and as messages quote them."""
    found: set[str] = set()
    for name, view in seen.items():
        if contains_mask(view):
            for text in secret_texts(properties.get(name), view):
                found.update((text, _masked_part(text, view)))
    return found | {form for text in found for form in _escape(text)}


def _escape(text: str) -> Iterator[str]:
    """Yield a text as messages quote it, in Python's and in JSON's notation."""
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _masked_part(text: str, view: Json) -> str:
    """Return the part of a text that its view masks."""
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


def _declared_secrets(attributes: Mapping[str, Json], schema: TypeSchema) -> Iterator[str]:
    return (name for name, one in schema.attributes.items() if one.secret and name in attributes)


def _derived_attributes(attributes: Mapping[str, Json], schema: TypeSchema) -> Iterator[str]:
    """Yield the attributes that may repeat a property. Members record their own secrets."""
    for name in attributes:
        known = schema.attributes.get(name)
        if name != MEMBERS_ENTRY and not (known is not None and known.public):
            yield name


def _unchanged_secrets(work: Work, attributes: Mapping[str, Json]) -> Iterator[str]:
    """Yield the secrets of the resource that the operation left unchanged."""
    in_place = work.operation in IN_PLACE_OPERATIONS or work.operation == Operation.UPDATE
    before, secret = work.attributes or {}, (work.secret_attributes or ()) if in_place else ()
    for name in before if EVERY_ATTRIBUTE in secret else secret:
        if name in attributes and attributes[name] == before.get(name):
            yield name
