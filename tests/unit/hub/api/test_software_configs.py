"""What the API shows of the configs of deployments."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from engine.hot.expressions.masking import MASK
from engine.store.software.software_configs import ConfigRecord
from hub.api.orchestration.software_configs import config_document


@pytest.mark.parametrize("name", ["deploy_signal_id", "deploy_password"])
def test_credentials_of_a_deployment_are_masked(name: str) -> None:
    inputs = [{"name": name, "value": "secret"}, {"name": "deploy_queue_id", "value": "q"}]
    created = datetime(2026, 1, 1, tzinfo=UTC)
    config = ConfigRecord(UUID(int=1), "p", "n", "script", "true", inputs, [], {}, created)
    assert config_document(config)["inputs"] == inputs
    shown = config_document(config, secrets=False)["inputs"]
    assert shown == [{"name": name, "value": MASK}, inputs[1]]
