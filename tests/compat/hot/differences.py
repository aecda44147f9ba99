"""Where Headgate means to differ from Heat: in which cases, and how.

The reasons are in docs/reference/heat-differences.md, by the same keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.compat.hot.comparing import Unlike

HEAT_REFUSES, WE_REFUSE = Unlike.ONLY_HEAT_REFUSES, Unlike.ONLY_WE_REFUSE
TYPE, STATUS, OUTPUTS = Unlike.ERROR_TYPE, Unlike.STATUS, Unlike.OUTPUTS
RESOURCES, SAID = Unlike.RESOURCES, Unlike.SAID


@dataclass(frozen=True, slots=True)
class Difference:
    """cases: globs on the names of cases; each must match one that differs so."""

    key: str
    how: Unlike
    cases: Sequence[str]

    def covers(self, name: str, how: Unlike) -> bool:
        return how is self.how and bool(self.matching(name))

    def matching(self, name: str) -> list[str]:
        return [pattern for pattern in self.cases if fnmatchcase(name, pattern)]


#: Functions whose arguments Heat looks at only when an output is shown.
SHOWN = (
    "get_param get_file get_resource list_join str_replace str_replace_strict str_replace_vstrict "
    "repeat digest resource_facade str_split map_merge map_replace filter contains make_url "
    "list_concat list_concat_unique cfn_functions yaql"
)

DIFFERENCES: Sequence[Difference] = (
    Difference("outputs", WE_REFUSE, [
        *(f"functions/{name}/* output" for name in SHOWN.split()),
        "sections/condition_off_referred", "sections/output_reference_unknown",
        "cfn/aws/ref_unknown", "cfn/aws/mappings_unknown",
        "nested/resource_unknown", "nested/output_unknown",
    ]),
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
        "functions/str_split/18 *", "combined/48", "combined/49", "sections/output_unknown_key",
        "sections/output_condition_early", "cfn/aws/resource_key_unknown", "cfn/heat/condition",
        "updates/patch_unknown",
    ]),
    Difference("unused-conditions", WE_REFUSE, [
        "conditions/52", "sections/condition_circle", "sections/condition_circle_self",
        "cfn/aws/condition_circle", "cfn/aws/condition_ref_resource",
    ]),
    Difference("wrong-types", WE_REFUSE, [
        *(f"parameters/{number}" for number in (4, 5, 13, 25, 27, 28, 76, 79, 82, 198)),
        "sections/description_list", "functions/if/19 *", "functions/make_url/12 *",
        "cfn/aws/mappings_list", "cfn/aws/mappings_into_text", "functions/map_replace/22 property",
    ]),
    Difference("wrong-types", STATUS, ["functions/map_replace/22 late"]),
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
    Difference("resource-type", RESOURCES, [
        "environments/alias*", "environments/wildcard*", "environments/one_resource*",
        "environments/base_url", "environments/files_registry*", "updates/patch_keeps_registry",
    ]),
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
    Difference("ineffective-entries", WE_REFUSE, [
        "environments/one_resource_wildcard", "environments/merge_unknown_strategy",
    ]),
    Difference("crashes", HEAT_REFUSES, [
        "parameters/181", "environments/alias_self", "environments/encrypted",
        "functions/get_attr/32 *", "updates/if_leaves_out",
    ]),
    Difference("error-types", TYPE, [
        "conditions/29", "sections/parameter_pseudo_name", "updates/put_without_template",
        "nested/rule_broken_by_default",
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
            "nested_missing",
        )),
    ]),
    Difference("validate-values", HEAT_REFUSES, ["validations/condition_by_parameter"]),
    Difference("validate-response", SAID, [
        *(f"validations/{name}" for name in (
            "hidden_given", "defaults_hidden", "given_empty", "given_zero", "given_false",
            "registry_wildcard", "allowed_values", "nested_not_shown", "nested", "nested_groups",
            "nested_deep", "nested_defaults", "nested_list", "nested_by_parameter",
        )),
    ]),
)  # fmt: skip
