"""Strategies for random changes: small templates with breakpoints."""

from hypothesis import strategies as st

from engine.words import Json

NAMES = ("a", "b", "c", "d", "e")
POINTS = (
    "pre-create", "post-create", "pre-update", "post-update", "pre-replace", "post-replace",
    "pre-delete", "post-delete", "confirm-resize",
)  # fmt: skip
STACK_POINTS = ("pre-stack-update", "post-stack-update", "pre-stack-create", "post-stack-create")


class RequestedChange:
    """resources: name -> template of the resource. hooks: full rules of an environment."""

    def __init__(self, resources: Json, hooks: Json) -> None:
        self.resources = resources
        self.hooks = hooks

    def __repr__(self) -> str:
        """Short, so that a failing sequence can be read."""
        parts = [f"{name}({_short(one)})" for name, one in self.resources.items()]
        parts += [f"{one.get('at', 'stack')}:{one['on'][0]}/{one['mode']}/{one['on_timeout']}"
                 for one in self.hooks]  # fmt: skip
        return " ".join(parts)

    @property
    def template(self) -> Json:
        return {"heat_template_version": "2018-08-31", "resources": self.resources}


def _short(one: Json) -> str:
    size = one["properties"]["size"]
    if isinstance(size, dict):
        size = "=" + str(size.get("get_resource") or ".".join(size["get_attr"]))
    after = f" after {one['depends_on']}" if "depends_on" in one else ""
    return f"{size}{one['properties']['place']}{after}{' kept' if 'deletion_policy' in one else ''}"


@st.composite
def changes(draw: st.DrawFn) -> RequestedChange:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    resources: dict[str, Json] = {}
    for place, name in enumerate(names):
        resources[name] = draw(things(names[:place]))
    rules = [
        {"at": at, "on": [point], "mode": mode, "on_timeout": on_timeout}
        for at, point, mode, on_timeout in draw(
            st.lists(
                st.tuples(
                    st.sampled_from(names),
                    st.sampled_from(POINTS),
                    st.sampled_from(("wait", "wait", "notify", "stop")),
                    st.sampled_from(("stop", "continue", "reject")),
                ),
                max_size=2,
            )
        )
    ]
    if draw(st.integers(0, 7)) == 0:
        point, mode = draw(st.sampled_from(STACK_POINTS)), draw(st.sampled_from(("wait", "stop")))
        rules.append({"on": [point], "mode": mode, "on_timeout": "stop"})
    return RequestedChange(resources, rules)


@st.composite
def things(draw: st.DrawFn, before: list[str]) -> Json:
    """A Test::Thing that may come after, or read, one of those before it."""
    one: dict[str, Json] = {
        "type": "Test::Thing",
        "properties": {"size": draw(st.integers(1, 2)), "place": draw(st.sampled_from(("x", "y")))},
    }
    if draw(st.integers(0, 9)) == 0:
        one["deletion_policy"] = "Retain"
    if before:
        other = draw(st.sampled_from(before))
        match draw(st.integers(0, 3)):
            case 0:
                one["depends_on"] = other
            case 1:
                one["properties"]["size"] = {"get_resource": other}
            case 2:
                one["properties"]["size"] = {"get_attr": [other, "size"]}
    return one
