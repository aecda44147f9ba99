"""OS::Neutron::SecurityGroup and SecurityGroupRule."""

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import Kind, Property, TypeSchema, updatable
from engine.types.contract import Call, Outcome, ResourceType
from engine.types.live_object import UnreadableCode, UnreadableObject
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.neutron.lookups import SECURITY_GROUPS, between, custom, one_of
from engine.types.openstack.neutron.networks import name_of
from engine.types.openstack.neutron.neutron_type import (
    NeutronType,
    UniqueContentType,
    without_nulls,
)
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json

#: IP protocols by number and name.
PROTOCOLS: Final = (
    *map(str, range(256)), "ah", "dccp", "egp", "esp", "gre", "icmp", "icmpv6", "igmp",
    "ipv6-encap", "ipv6-frag", "ipv6-icmp", "ipv6-nonxt", "ipv6-opts", "ipv6-route", "ospf", "pgm",
    "rsvp", "sctp", "tcp", "udp", "udplite", "vrrp",
)  # fmt: skip
#: Numbers that Neutron stores as names, and other names of a protocol.
_SAME_PROTOCOL: Final[Mapping[str, str]] = {
    "1": "icmp", "6": "tcp", "17": "udp", "58": "ipv6-icmp", "icmpv6": "ipv6-icmp", "132": "sctp",
    "50": "esp", "51": "ah", "2": "igmp", "47": "gre", "89": "ospf", "112": "vrrp", "33": "dccp",
}  # fmt: skip
#: The fields by which Neutron distinguishes rules of a group.
_CONTENT: Final = (
    "direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix",
    "remote_group_id",
)  # fmt: skip
Rule = Mapping[str, Json]


def _rule_fields() -> dict[str, Property]:
    return {
        "description": Property(Kind.STRING, "Description."),
        "direction": Property(
            Kind.STRING,
            "Direction seen from the port.",
            default="ingress",
            constraints=one_of("ingress", "egress"),
        ),
        "ethertype": Property(
            Kind.STRING, "IP version.", default="IPv4", constraints=one_of("IPv4", "IPv6")
        ),
        "port_range_min": Property(
            Kind.INTEGER, "First port, or the ICMP type.", constraints=between(0, 65535)
        ),
        "port_range_max": Property(
            Kind.INTEGER, "Last port, or the ICMP code.", constraints=between(0, 65535)
        ),
        "protocol": Property(
            Kind.STRING, "IP protocol, by name or number.", constraints=one_of(*PROTOCOLS)
        ),
        "remote_ip_prefix": Property(
            Kind.STRING, "The other side, in CIDR form.", constraints=custom("net_cidr")
        ),
    }


SECURITY_GROUP: Final = TypeSchema(
    "OS::Neutron::SecurityGroup",
    description="A group of rules about the traffic of ports.",
    properties={
        "name": name_of("group"),
        "description": updatable(Kind.STRING, "Description."),
        "stateful": updatable(
            Kind.BOOLEAN, "Whether answers to allowed traffic are allowed as well."
        ),
        "rules": updatable(
            Kind.LIST,
            "The rules. Without a rule for egress, all egress is allowed.",
            default=[],
            items=Property(
                Kind.MAP,
                "A rule.",
                fields={
                    **_rule_fields(),
                    "remote_mode": Property(
                        Kind.STRING,
                        "What the other side is.",
                        default="remote_ip_prefix",
                        constraints=one_of("remote_ip_prefix", "remote_group_id"),
                    ),
                    "remote_group_id": Property(
                        Kind.STRING,
                        "Name or ID of the other side's group; the default is this group.",
                        constraints=custom("neutron.security_group"),
                    ),
                },
            ),
        ),
    },
)

_SINGLE: Final = _rule_fields()
SECURITY_GROUP_RULE: Final = TypeSchema(
    "OS::Neutron::SecurityGroupRule",
    description="A rule of a security group.",
    properties={
        **_SINGLE,
        "description": updatable(
            Kind.STRING, "Description. An update deletes the rule and creates it again."
        ),
        "protocol": Property(
            Kind.STRING,
            "IP protocol, by name or number.",
            default="tcp",
            constraints=one_of(*PROTOCOLS),
        ),
        "security_group": Property(
            Kind.STRING,
            "Name or ID of the group.",
            required=True,
            constraints=custom("neutron.security_group"),
        ),
        "remote_group": Property(
            Kind.STRING,
            "Name or ID of the other side's group.",
            constraints=custom("neutron.security_group"),
        ),
    },
)
_OWN_EGRESS: Final[Sequence[Rule]] = (
    {"direction": "egress", "ethertype": "IPv4"},
    {"direction": "egress", "ethertype": "IPv6"},
)


def content_of(rule: Rule) -> tuple[Json, ...]:
    """What distinguishes a rule from others of its group, in the form that Neutron stores."""
    values = {name: rule.get(name) for name in _CONTENT}
    if (protocol := values["protocol"]) is not None:
        low = str(protocol).lower()
        values["protocol"] = _SAME_PROTOCOL.get(low, low)
    if prefix := values["remote_ip_prefix"]:
        network = ipaddress.ip_network(str(prefix), strict=False)
        values["remote_ip_prefix"] = None if network.prefixlen == 0 else str(network)
    return tuple(values.values())


def with_egress(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of a group with the given ones: Neutron's egress rules, unless one is given."""
    own = any(one["direction"] == "egress" for one in rules)
    return list(rules) if own else [*rules, *_OWN_EGRESS]


def existing_rules(group: str, rules: Sequence[Rule]) -> list[dict[str, Json]]:
    """The rules of an existing group as a template has them: without those that Neutron gives to
    each group. Raises UnreadableObject if it has no rule for egress, which no template can say."""
    if not any(one["direction"] == "egress" for one in rules):
        raise UnreadableObject(
            UnreadableCode.UNSUPPORTED, "id",
            "the security group has no rule for egress, and a template would add it",
            "Add a rule for egress to the group, or leave the group out.",
        )  # fmt: skip
    defaults = [dict(one) for one in _OWN_EGRESS]
    own = [{key: value for key, value in one.items() if value not in (None, "")} for one in rules]
    if [one for one in own if one["direction"] == "egress" and one not in defaults] == []:
        own = [one for one in own if one["direction"] != "egress"]
    for one in own:
        if (other := one.get("remote_group_id")) is not None:
            one["remote_mode"] = "remote_group_id"
            if other == group:
                del one["remote_group_id"]
    return sorted(own, key=lambda one: sorted((name, str(value)) for name, value in one.items()))


class SecurityGroupType(NeutronType):
    importable = True

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Make the rules those of the template. Rules that neither the template nor the previous
        one has stay: they belong to other resources."""
        if not self.touches(call, "rules"):
            return found
        group = self.id_of(found)
        wanted = with_egress(await self._rules(call, session, call.properties, group))
        before = call.previous or {"rules": []}
        known = with_egress(await self._rules(call, session, before, group))
        has = found.get("security_group_rules") or []
        extra, missing = rule_changes(wanted, known, has)
        for one in extra:
            await self._delete_rule(session, id_of(NETWORK, one))
        if missing:
            await self._create_rules(session, group, missing)
        return await self.get(session, path, group) if extra or missing else found

    async def _rules(
        self, call: Call, session: Session, properties: Mapping[str, Json], group: str
    ) -> list[Rule]:
        rules: list[Rule] = []
        for given in properties.get("rules") or []:
            rule = without_nulls(given)
            mode, remote = rule.pop("remote_mode", ""), rule.pop("remote_group_id", None)
            if remote:
                rule["remote_group_id"] = await SECURITY_GROUPS.find_id(
                    session, str(remote), call.project
                )
            elif mode == "remote_group_id":
                rule["remote_group_id"] = group
            rules.append(rule)
        return rules

    async def _delete_rule(self, session: Session, rule: str) -> None:
        path = f"/security-group-rules/{segment(rule)}"
        await session.delete(NETWORK, path, "delete a rule of the security group")

    async def _create_rules(self, session: Session, group: str, rules: Sequence[Rule]) -> None:
        """All in one request; one after another if Neutron already has one of them."""
        bodies = [{**one, "security_group_id": group} for one in rules]
        try:
            await self._post_rules(session, {"security_group_rules": bodies})
        except CloudError as error:
            if not _exists(error):
                raise
            for body in bodies:
                try:
                    await self._post_rules(session, {"security_group_rule": body})
                except CloudError as one:
                    if not _exists(one):
                        raise

    async def _post_rules(self, session: Session, body: Json) -> None:
        doing = "create the rules of the security group"
        await session.request(NETWORK, "POST", "/security-group-rules", doing, body)

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        return await self.ports_using(session, {"security_groups": object_id})

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        live = await super().live_properties(session, found, imported)
        live.values["rules"] = existing_rules(self.id_of(found), live.values.get("rules") or [])
        return live

    def field_of(self, name: str) -> str:
        return "security_group_rules" if name == "rules" else super().field_of(name)

    def is_observed(self, name: str) -> bool:
        return name == "rules" or super().is_observed(name)

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        """Each rule exists; others may belong to other resources. A rule that names a group by its
        name, or the group itself, is compared without it."""
        if name != "rules":
            return super().is_same(name, desired, observed)
        has = {content_of(one)[:-1] for one in observed}
        return all(content_of(one)[:-1] in has for one in desired)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get("name") == "default":
            reason = 'Security groups cannot be assigned the name "default".'
            findings.add(f"{place}.name", reason, "Use a different name.")
        rules = properties.get("rules")
        for number, one in enumerate(rules if isinstance(rules, list) else []):
            if isinstance(one, Mapping):
                check_rule(one, f"{place}.rules[{number}]", findings)


def _exists(error: CloudError) -> bool:
    return error.status == CONFLICT and "Exists" in error.kind


def rule_changes(
    wanted: Sequence[Rule], known: Sequence[Rule], has: Sequence[Rule]
) -> tuple[list[Rule], list[Rule]]:
    """(rules to delete, rules to create). known: those of the previous template. has: of Neutron.

    A rule whose description differs is deleted and created again.
    """
    texts = {content_of(one): one.get("description") or "" for one in wanted}
    before = {content_of(one) for one in known}
    kept, extra = set(), []
    for one in has:
        content = content_of(one)
        described = content not in texts or (one.get("description") or "") == texts[content]
        if content in texts and described:
            kept.add(content)
        elif content in texts or content in before:
            extra.append(one)
    missing = {content_of(one): one for one in wanted if content_of(one) not in kept}
    return extra, list(missing.values())


class SecurityGroupRuleType(UniqueContentType):
    def narrow_query(self, fields: Mapping[str, Json]) -> Mapping[str, str]:
        return {"security_group_id": str(fields["security_group_id"])}

    async def find_created(
        self, call: Call, session: Session, path: str, mark: object
    ) -> Mapping[str, Json] | None:
        fields = await self.fields_for_create(call, session)
        found = await session.list(NETWORK, path, self.row.list_key, self.narrow_query(fields))
        described = fields.get("description") or ""
        for one in found:
            same = content_of(one) == content_of(fields)
            if same and (one.get("description") or "") == described:
                return one
        return None

    async def _update(self, call: Call, session: Session) -> Outcome:
        """Only the description changes, which Neutron cannot update: the rule is deleted, because
        two rules cannot differ in it alone, and created again."""
        path = await self._path(call, session)
        found = await self.find_created(call, session, path, None)
        if found is None:
            try:
                await self.remove(call, session, path, str(call.physical_id))
            except CloudError as error:
                if not error.is_missing:
                    raise
            found = await self.post(
                call, session, path, await self.fields_for_create(call, session)
            )
        return await self._finish(call, session, found, path)

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name == "protocol" and observed is not None:
            low, other = str(desired).lower(), str(observed).lower()
            return _SAME_PROTOCOL.get(low, low) == _SAME_PROTOCOL.get(other, other)
        return super().is_same(name, desired, observed)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_rule({"protocol": "tcp", **properties}, place, findings)


_ONE_REMOTE: Final = "Remove one of them."


def check_rule(rule: Rule, place: str, findings: Findings) -> None:
    """Add findings about values that exclude each other."""
    given = {name for name, value in rule.items() if value is not None}
    for remote in ("remote_group", "remote_group_id"):
        if {remote, "remote_ip_prefix"} <= given:
            reason = f"{remote} and remote_ip_prefix exclude each other"
            findings.add(place, reason, _ONE_REMOTE)
    first, last = rule.get("port_range_min"), rule.get("port_range_max")
    protocol = str(rule.get("protocol") or "").lower()
    is_icmp = _SAME_PROTOCOL.get(protocol, protocol) in ("icmp", "ipv6-icmp")
    if isinstance(first, int) and isinstance(last, int) and first > last and not is_icmp:
        reason = f"port_range_min {first} is greater than port_range_max {last}"
        findings.add(place, reason, "Exchange them.")


def security_group_types(cloud: Cloud) -> list[ResourceType]:
    groups = {"security_group": SECURITY_GROUPS, "remote_group": SECURITY_GROUPS}
    return [
        SecurityGroupType(
            SECURITY_GROUP,
            ObjectRow(
                "security group", NETWORK, "/security-groups", "security_group", "security_groups",
                separate=frozenset({"rules"}), cleared={"stateful": True},
            ),
            cloud,
        ),
        SecurityGroupRuleType(
            SECURITY_GROUP_RULE,
            ObjectRow(
                "security group rule", NETWORK, "/security-group-rules", "security_group_rule",
                "security_group_rules",
                fields={"security_group": "security_group_id", "remote_group": "remote_group_id"},
                lookups=groups, named=False, marked=False,
            ),
            cloud,
        ),
    ]  # fmt: skip
