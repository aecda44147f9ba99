"""What people may wish for: small random templates, with breakpoints."""

from dataclasses import dataclass

from hypothesis import strategies as st

from engine.words import Json

NAMES = ("a", "b", "c", "d", "e")
POINTS = ("pre-create", "post-create", "pre-update", "post-update", "pre-delete", "post-delete")


@dataclass(frozen=True)
class Wish:
    """resources: name -> template of the resource. hooks: full rules of an environment."""

    resources: Json
    hooks: Json

    @property
    def template(self) -> Json:
        return {"heat_template_version": "2018-08-31", "resources": self.resources}


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
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
    return Wish(resources, rules)


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
