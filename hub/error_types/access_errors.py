"""Errors of authentication, rights and credentials."""

from engine.errors import Conflict, Forbidden, HeadgateError, Invalid, Unavailable
from hub.error_types.error_type import ErrorType

TYPES = (
    ErrorType(
        "Unauthorized", HeadgateError,
        "The token, password or session is missing, wrong or expired. The token of a hook may"
        " belong to another hook, or its key may have been rotated out.",
        "Sign in again, or use another token.",
        "Authorization", "this is not the hook's token",
        "Send `Authorization: Bearer TOKEN` with the token of the hook's notification.",
    ),
    ErrorType(
        "Forbidden", Forbidden,
        "You are authenticated, but you lack a right. The remedy names the role that has it.",
        "Ask an admin for this role ([Set up access](../how-to/set-up-access.md#roles)).",
        "", "ada has no right to change stacks here",
        "The role author is required; an admin can grant it.",
    ),
    ErrorType(
        "InvalidTenant", Forbidden,
        "The credential is valid for another project than the one in the URL.",
        "Use the project of the credential in the URL, or a credential of the other project.",
        "", "deploy belongs to another project", "Use the project of the token in the URL.",
    ),
    ErrorType(
        "MayNotAnswer", Forbidden,
        "The rule of the hook does not let you answer it: `answer_by` does not include you, or"
        " `exclude: requester` excludes you. The audit log records the attempt.",
        "Ask a principal who may answer. `headgate hook show` lists them.",
        "", "you may not answer hook pre-update of db: the requester may not answer",
        "Ask a principal who may answer it, or ask them to hand it over to you.",
    ),
    ErrorType(
        "CrossSiteRequest", Forbidden,
        "A page of another site sent the request from a browser.",
        "If the page is yours, ask the operator to allow its origin in `[server] cors_origins`.",
        "", "a page of another site sent this request",
        "The operator can allow this origin in [server] cors_origins, or require sign-in with"
        " [auth] mode.",
    ),
    ErrorType(
        "UnknownHost", Forbidden,
        "The request names a host that is not this server.",
        "Use the host of `[server] public_url`, or `localhost`.",
        "", '"headgate.local" is not a host name of this server',
        "Use localhost; the operator sets the host name in [server] public_url.",
    ),
    ErrorType(
        "KeystoneUnavailable", Unavailable,
        "Keystone does not respond, or it rejects the application credential of the server."
        " Changes under way continue.",
        "Try again later. The operator checks `[auth.keystone]`.",
        "[auth.keystone] url", "Keystone is unavailable: it responded with 503",
        "Try again later; running changes continue.",
    ),
    ErrorType(
        "OidcUnavailable", Unavailable,
        "The OpenID provider does not respond, or not as its protocol requires. The message names"
        " the reason.",
        "Sign in with a token or password, or try again later.",
        "[auth.oidc] issuer", "the OpenID provider is unavailable: it responded with 502",
        "Try again later, or sign in with a token or password.",
    ),
    ErrorType(
        "TrustRefused", Forbidden,
        "Keystone no longer accepts the trust of the change, for example because the user was"
        " deleted.",
        "Update the stack with a token of your own.",
        "", "the trust of this change is no longer valid: Keystone responded with 403",
        "Update the stack, or answer its hook, with a token of your own.",
    ),
    ErrorType(
        "ObservationCredentialRefused", Invalid,
        "Keystone rejects the application credential, or the credential is unrestricted or belongs"
        " to another project. The place names the field.",
        "Create another credential, as [Hand over a credential of your"
        " project](../how-to/use-openstack.md#hand-over-a-credential-of-your-project) describes.",
        "application_credential_id",
        "the application credential 5d0c9f2a is unrestricted: its holder can create"
        " application credentials and trusts of its user",
        "Create one without --unrestricted.",
    ),
    ErrorType(
        "PasswordExists", Conflict,
        "The name already has a password.",
        "Revoke that password first, or choose another name.",
        "name", "ada has a password already",
        "Revoke that one first, or choose another name.",
    ),
    ErrorType(
        "KeyUnknown", Conflict,
        "A running process does not have the new key yet.",
        "Add the key to `fallback_key_files` of all processes before you rotate ([Rotate"
        " keys](../how-to/rotate-keys.md)).",
        "[credentials]", "process 4711 on node-2 does not have the key 5d0c9f2a",
        "First add the new key to fallback_key_files of all processes; restart them.",
    ),
)  # fmt: skip
