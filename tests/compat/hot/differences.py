"""The intended differences from Heat: which cases, and how they differ.

The reasons are in docs/reference/heat-differences.md, under the same keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.compat.hot.comparison import DifferenceKind

HEAT_REFUSES, WE_REFUSE = DifferenceKind.ONLY_HEAT_REFUSES, DifferenceKind.ONLY_WE_REFUSE
TYPE, STATUS, OUTPUTS = DifferenceKind.ERROR_TYPE, DifferenceKind.STATUS, DifferenceKind.OUTPUTS
RESOURCES, RESPONSE = DifferenceKind.RESOURCES, DifferenceKind.RESPONSE


@dataclass(frozen=True, slots=True)
class Difference:
    """cases: globs of names of cases; each must match a case with this difference."""

    key: str
    kind: DifferenceKind
    cases: Sequence[str]

    def covers(self, name: str, kind: DifferenceKind) -> bool:
        return kind is self.kind and bool(self.matching(name))

    def matching(self, name: str) -> list[str]:
        return [pattern for pattern in self.cases if fnmatchcase(name, pattern)]


DIFFERENCES: Sequence[Difference] = (
    Difference("outputs", OUTPUTS, ["nested/resource_attribute_unknown"]),
    Difference("unknown-values", HEAT_REFUSES, [
        *(f"functions/{name}/* late" for name in (
            "str_replace", "str_replace_strict", "str_replace_vstrict", "repeat",
            "digest", "contains", "make_url", "cfn_functions", "yaql",
        )),
        "combined/*",
    ]),
    Difference("null-sections", HEAT_REFUSES, [
        *(f"sections/{name}_null" for name in (
            "conditions", "properties", "metadata", "depends_on", "deletion", "update_policy",
            "condition",
        )),
        "functions/make_url/29 *",
    ]),
    Difference("unknown-keys", WE_REFUSE, [
        "functions/str_replace/20 *", "functions/repeat/10 *", "functions/repeat/29 *",
        "functions/str_split/18 *", "combined/48", "combined/49", "updates/patch_unknown",
    ]),
    Difference("unused-conditions", WE_REFUSE, [
        "conditions/52",
    ]),
    Difference("wrong-types", WE_REFUSE, [
        *(f"parameters/{number}" for number in (4, 5, 13, 25, 27, 28, 76, 79, 82, 198)),
        "sections/description_list", "functions/if/19 *", "functions/make_url/12 *",
        "cfn/aws/mappings_list", "cfn/aws/mappings_into_text", "functions/map_replace/22 property",
    ]),
    Difference("wrong-types", STATUS, ["functions/map_replace/22 late"]),
    Difference("wrong-types", OUTPUTS, ["functions/map_replace/22 output"]),
    Difference("list-items", OUTPUTS, ["parameters/36"]),
    Difference("list-items", HEAT_REFUSES, ["parameters/186"]),
    Difference("whole-pattern", HEAT_REFUSES, ["parameters/140"]),
    Difference("not-with-list", HEAT_REFUSES, ["conditions/11"]),
    Difference("functions-for-literals", HEAT_REFUSES, [
        "functions/repeat/18 *", "sections/properties_function", "cfn/aws/getatt_text",
        "cfn/snippets/55 *", "cfn/aws/split_by_reference",
    ]),
    Difference("value-conversion", HEAT_REFUSES, [
        "sections/property_value_list", "sections/property_value_json",
        "sections/property_value_boolean",
    ]),
    Difference("equals-sign", HEAT_REFUSES, ["sections/text_yaml_words"]),
    Difference("value-conversion", OUTPUTS, ["sections/property_value_type"]),
    Difference("availability-zones", HEAT_REFUSES, ["functions/cfn_functions/8 property"]),
    Difference("availability-zones", OUTPUTS, ["functions/cfn_functions/8 output"]),
    Difference("request-parameters-win", OUTPUTS, [
        "environments/files_given_wins", "environments/files_given_null",
        "environments/merge_with_given",
    ]),
    Difference("environment-merging", HEAT_REFUSES, [
        *(f"environments/merge_{name}" for name in (
            "number", "list_mixed", "json_text", "json_list", "default", "default_but_one",
            "text_number", "float",
        )),
    ]),
    Difference("environment-merging", OUTPUTS, ["environments/merge_number_text"]),
    Difference("crashes", HEAT_REFUSES, [
        "parameters/181", "environments/alias_self", "environments/encrypted",
        "functions/get_attr/32 *", "updates/if_leaves_out", "sections/text_number_key",
    ]),
    Difference("error-types", TYPE, [
        "sections/parameter_pseudo_name", "nested/rule_broken_by_default",
        *(f"validations/{name}" for name in (
            "given_unknown", "environment_unknown", "reference_unknown", "circle", "nested_wrong",
        )),
    ]),
    Difference("nondeterministic", WE_REFUSE, ["functions/yaql/45 *", "functions/yaql/46 *"]),
    Difference("metadata", RESOURCES, [
        "updates/metadata_changes", "updates/metadata_goes", "updates/external_id_changes",
    ]),
    Difference("same-value", HEAT_REFUSES, [
        "updates/immutable_written_otherwise", "updates/immutable_json",
    ]),
    Difference("failed-update", OUTPUTS, ["updates/restricted_update"]),
    Difference("validate-values", WE_REFUSE, [
        *(f"validations/{name}" for name in (
            "given_wrong", "given_against_rule", "property_missing", "property_by_parameter_wrong",
        )),
    ]),
    Difference("validate-values", HEAT_REFUSES, ["validations/condition_by_parameter"]),
    Difference("own-version", RESPONSE, ["versions/all"]),
    Difference("validate-response", RESPONSE, [
        *(f"validations/{name}" for name in (
            "hidden_given", "defaults_hidden", "given_empty", "given_zero", "given_false",
            "allowed_values",
        )),
    ]),
)  # fmt: skip
