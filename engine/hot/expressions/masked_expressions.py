"""Which parts of an expression are secret, by the same expression with secrets masked."""

from collections.abc import Mapping

from engine.hot.expressions.expression import Expression, FunctionCall
from engine.hot.expressions.masking import contains_mask


def masks_part(masked: Expression, plain: Expression) -> bool:
    """Return whether a part of an expression is masked. plain: the expression without masks, whose
    plain values may be converted. A call that is evaluated later hides its secrets among its
    arguments."""
    if isinstance(masked, FunctionCall) or isinstance(plain, FunctionCall):
        return bool(masked != plain)
    if isinstance(masked, Mapping) and isinstance(plain, Mapping):
        return masked.keys() != plain.keys() or any(
            masks_part(item, plain[key]) for key, item in masked.items()
        )
    if isinstance(masked, list) and isinstance(plain, list):
        return len(masked) != len(plain) or any(map(masks_part, masked, plain))
    return contains_mask(masked)
