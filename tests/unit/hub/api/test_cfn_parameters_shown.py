"""Parameters of CFN templates in responses of the API."""

from engine.words import Json
from hub.api.orchestration.documents import parameter
from tests.unit.hot.test_cfn_parameters import stack


def test_a_parameter_is_shown_as_the_template_declares_it() -> None:
    written: dict[str, Json] = {
        "Type": "Number", "Default": 5, "NoEcho": "true", "MinValue": 1, "MaxValue": 9,
        "AllowedValues": [5, 7], "Description": "d", "ConstraintDescription": "c", "Label": "l",
    }  # fmt: skip
    shown = written | {"ConstraintDescription": "c c"}  # once for each of two constraints
    assert parameter(stack(**written).schemas["p"], None) == shown
