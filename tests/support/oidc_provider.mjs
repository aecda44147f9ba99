// An OpenID provider on loopback. Argument: a JSON document, see tests/support/oidc_provider.py.
// Its login form accepts any password of a known account.

import { generateKeyPairSync } from "node:crypto";
import { Provider } from "../../hub/dashboard/node_modules/oidc-provider/lib/index.js";

const settings = JSON.parse(process.argv[2]);

/** @param {string} kid */
function newKey(kid) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" };
}

const provider = new Provider(`http://127.0.0.1:${settings.port}`, {
  clients: [
    {
      client_id: settings.client_id,
      client_secret: settings.client_secret,
      redirect_uris: settings.redirect_uris,
    },
  ],
  jwks: { keys: [newKey(settings.kid)] },
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email", "email_verified"] },
  conformIdTokenClaims: settings.claims_by_userinfo,
  pkce: { required: () => true },
  ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  async findAccount(_, id) {
    const claims = settings.accounts[id];
    return claims && { accountId: id, claims: async () => ({ sub: id, ...claims }) };
  },
  // Without a page that asks for consent.
  async loadExistingGrant(context) {
    const grant = new context.oidc.provider.Grant({
      clientId: context.oidc.client.clientId,
      accountId: context.oidc.session.accountId,
    });
    grant.addOIDCScope("openid profile email");
    await grant.save();
    return grant;
  },
});

provider.listen(settings.port, "127.0.0.1", () => console.log("listening"));
