"""Tokens with a vendor's prefix: a table of the public ones.

A row is data: kind, prefixes, alphabet of what follows, fewest and most characters that follow.
A token is anchored on its own alphabet and length, never on the text behind it, because in prose
that is a full stop or a bracket as often as a space.
"""

from __future__ import annotations

from functools import lru_cache

from memtool.redaction.entropy import (
    Pattern,
    is_filler,
    is_hex_or_uuid,
    is_wordlike,
    restlessness,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ALPHABETS: dict[str, str] = {
    "hex": "[0-9a-fA-F]",
    "uuid": "[0-9a-fA-F-]",
    "upper": "[A-Z0-9]",
    "upper-dashed": "[A-Z0-9-]",
    "lower": "[a-z0-9]",
    "alnum": "[A-Za-z0-9]",
    "word": "[A-Za-z0-9_]",
    "dense": "[A-Za-z0-9_-]",
    "base64": "[A-Za-z0-9+/]",
    "dotted": "[A-Za-z0-9_.=-]",
}

LOOSE = 500
"""The most characters of a row whose length the vendor does not promise."""

ROWS: tuple[tuple[str, str, str, int, int], ...] = (
    ("adafruit-token", "aio_", "alnum", 28, 28),
    ("adobe-token", "p8e-", "lower", 32, 32),
    ("age-secret-key", "AGE-SECRET-KEY-1", "upper", 50, 60),
    ("aiven-token", "aivenv1", "base64", 60, LOOSE),
    ("alchemy-token", "alcht_", "alnum", 30, 40),
    ("alibaba-access-key", "LTAI", "alnum", 12, 20),
    ("anthropic-token", "sk-ant-", "dense", 20, LOOSE),
    ("anyscale-token", "esecret_", "alnum", 24, 60),
    ("apify-token", "apify_api_", "alnum", 30, 50),
    ("artifactory-token", "AKCp", "alnum", 60, 80),
    ("artifactory-token", "cmVmdGtu", "base64", 50, LOOSE),
    ("asaas-token", "$aact_prod_ $aact_hmlg_ $aact_", "dense", 60, 200),
    ("atlassian-token", "ATATT3 ATCTT3", "dotted", 60, LOOSE),
    ("atlassian-token", "ATBB", "alnum", 28, 40),
    ("atlassian-token", "ATOA", "dense", 40, LOOSE),
    ("authress-token", "sc_ ext_ scauth_", "dotted", 60, 200),
    ("aws-access-key", "AKIA ASIA ABIA ACCA", "upper", 16, 16),
    ("aws-bedrock-key", "ABSK", "base64", 80, LOOSE),
    ("aws-bedrock-key", "bedrock-api-key-", "base64", 40, LOOSE),
    ("aws-mws-token", "amzn.mws.", "uuid", 36, 36),
    ("aws-oauth-secret", "amzn1.oa2-cs.v1.", "hex", 60, 64),
    ("axiom-token", "xaat- xapt-", "uuid", 36, 36),
    ("azure-devops-token", "AZDO", "alnum", 76, 84),
    ("baidu-access-key", "ALTAK", "alnum", 20, 40),
    ("baseten-token", "btn_", "alnum", 30, 60),
    ("beamer-token", "b_", "dense", 44, 44),
    ("bitbucket-token", "ATCBB", "alnum", 28, LOOSE),
    ("bitwarden-token", "0.", "dotted", 60, 120),
    ("brave-token", "BSA", "dense", 27, 28),
    ("brevo-token", "xkeysib- xsmtpsib-", "dense", 60, 90),
    ("browserbase-token", "bb_live_ bb_test_", "dense", 20, 60),
    ("buildkite-token", "bkua_", "hex", 40, 40),
    ("cal-token", "cal_live_ cal_test_", "hex", 32, 32),
    ("canva-token", "cnvca", "dense", 40, 80),
    ("cashfree-token", "cfsk_ma_prod_ cfsk_ma_test_", "word", 40, 60),
    ("cerebras-token", "csk-", "lower", 40, 60),
    ("chief-token", "ctp_", "alnum", 40, 60),
    ("circleci-token", "CCIPAT_ CCIPRJ_", "word", 40, LOOSE),
    ("clickhouse-token", "4b1d", "alnum", 38, 38),
    ("clojars-token", "CLOJARS_", "alnum", 50, 64),
    ("cloudflare-token", "cfut_ cfat_", "alnum", 36, 60),
    ("cloudflare-token", "v1.0-", "uuid", 100, LOOSE),
    ("cockroach-token", "CCDB1_", "word", 30, LOOSE),
    ("codecov-token", "codecov_", "alnum", 30, 60),
    ("confluent-token", "cflt", "base64", 56, 64),
    ("contentful-token", "CFPAT-", "dense", 40, 50),
    ("coreweave-token", "CW-SECRET-", "alnum", 30, 60),
    ("crates-token", "cio", "alnum", 32, 32),
    ("databricks-token", "dapi dose dkea", "hex", 32, 32),
    ("datadog-token", "ddapi_ ddapp_", "alnum", 30, 60),
    ("daytona-token", "dtn_", "hex", 60, 64),
    ("defined-token", "dnkey-", "dense", 40, 120),
    ("deno-token", "ddp_ ddo_", "alnum", 36, 36),
    ("devcycle-token", "dvc_server_ dvc_client_ dvc_mobile_", "dense", 30, 60),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", "hex", 60, 64),
    ("discord-token", "mfa.", "dense", 60, 100),
    ("docker-token", "dckr_pat_ dckr_oat_", "dense", 24, 60),
    ("doppler-token", "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", "alnum", 36, 50),
    ("doppler-token", "dp.st.", "dotted", 36, 80),
    ("dropbox-token", "sl.", "dense", 120, 2000),
    ("duffel-token", "duffel_live_ duffel_test_", "dense", 40, 50),
    ("e2b-token", "e2b_", "hex", 40, 40),
    ("easypost-token", "EZAK EZTK", "alnum", 54, 54),
    ("elastic-token", "essu_", "base64", 40, LOOSE),
    ("elevenlabs-token", "sk_", "hex", 48, 48),
    ("endor-token", "endr+", "alnum", 16, 40),
    ("facebook-token", "EAAM EAAC EAAB EAAG", "alnum", 40, LOOSE),
    ("fal-token", "fal_sk_", "alnum", 24, 80),
    ("figma-token", "figd_ figo_ figu_", "dense", 36, 60),
    ("firecrawl-token", "fc-", "hex", 32, 32),
    ("fireworks-token", "fw_", "alnum", 22, 32),
    ("flutterwave-token", "FLWSECK-", "dense", 30, 60),
    ("flutterwave-token", "FLWSECK_TEST-", "dense", 12, 60),
    ("fly-token", "fm1r_ fm2_", "base64", 60, LOOSE),
    ("fly-token", "fo1_", "dense", 40, 50),
    ("frameio-token", "fio-u-", "dense", 60, 70),
    ("freemius-token", "sk_", "word", 29, 29),
    ("friendli-token", "flp_", "alnum", 40, 60),
    ("gcntfy-token", "gcntfy-", "dense", 60, 200),
    ("gcp-api-key", "AIza", "dense", 35, 35),
    ("gcp-oauth-secret", "GOCSPX-", "dense", 24, 32),
    ("gcp-oauth-token", "ya29.", "dense", 20, 1000),
    ("gcp-refresh-token", "1//0", "dense", 40, 200),
    ("gitea-token", "gta_", "hex", 40, 40),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", "alnum", 36, 100),
    ("github-token", "github_pat_", "word", 30, 255),
    ("gitlab-token", "GR1348941", "dense", 20, 30),
    ("gitlab-token", "glagent-", "dense", 50, 60),
    ("gitlab-token", "glimt-", "dense", 25, 60),
    ("gitlab-token", "gloas-", "hex", 60, 64),
    ("gitlab-token", "glpat- gldt- glrt- glrtr- glft- glsoat- glcbt- glffct-", "dense", 20, 60),
    ("gitlab-token", "glptt-", "hex", 40, 40),
    ("gocardless-token", "live_", "dense", 40, 40),
    ("grafana-token", "eyJrIjoi", "base64", 60, LOOSE),
    ("grafana-token", "glc_", "base64", 32, LOOSE),
    ("grafana-token", "glsa_", "word", 36, 50),
    ("groq-token", "gsk_", "alnum", 40, 60),
    ("growthbook-token", "secret_admin_ secret_readonly_ secret_user_", "alnum", 30, 60),
    ("harness-token", "pat.", "dotted", 60, 90),
    ("harness-token", "sat.", "dotted", 60, 90),
    ("heroku-token", "HRKU-", "dense", 36, 80),
    ("hetzner-token", "hcloud_", "alnum", 60, 70),
    ("highnote-token", "rk_live_ rk_test_", "dense", 40, 120),
    ("honeybadger-token", "hbp_", "alnum", 30, 40),
    ("honeycomb-token", "hcaik_ hcalk_ hcxik_ hcxlk_ hcbik_ hcamk_", "lower", 50, 70),
    ("hubspot-token", "pat-na1- pat-na2- pat-eu1-", "uuid", 36, 36),
    ("huggingface-token", "hf_ api_org_", "alnum", 30, 40),
    ("influx-token", "apiv3_", "dense", 60, 100),
    ("infracost-token", "ico-", "alnum", 32, 32),
    ("inngest-token", "signkey-prod- signkey-test- signkey-branch-", "hex", 60, 64),
    ("instagram-token", "IGQ", "dense", 60, LOOSE),
    ("intercom-token", "dG9rOg", "base64", 40, 80),
    ("intra42-secret", "s-s4t2ud- s-s4t2af-", "hex", 60, 64),
    ("ionic-token", "ion_", "alnum", 42, 50),
    ("iterative-token", "isat_", "alnum", 40, 60),
    ("jd-cloud-token", "JDC_", "upper", 25, 40),
    ("jina-token", "jina_", "dense", 40, 80),
    ("kaggle-token", "KGAT_", "hex", 32, 32),
    ("klaviyo-token", "pk_", "hex", 34, 34),
    ("knock-token", "sk_test_ sk_live_", "dense", 30, 60),
    ("langfuse-token", "sk-lf-", "uuid", 36, 36),
    ("langsmith-token", "lsv2_pt_ lsv2_sk_", "word", 40, 60),
    ("launchdarkly-token", "sdk- api- mob-", "uuid", 36, 36),
    ("lichess-token", "lip_ lio_", "alnum", 20, 40),
    ("linear-token", "lin_api_", "alnum", 32, 60),
    ("linear-token", "lin_oauth_", "alnum", 32, 80),
    ("linear-token", "lin_wh_", "alnum", 20, 80),
    ("linkedin-token", "WPL_AP", "dotted", 16, 60),
    ("localstack-token", "ls-", "uuid", 32, 60),
    ("logfire-token", "pylf_v", "word", 40, 60),
    ("logicmonitor-token", "lmb_ lma_", "dotted", 40, 200),
    ("logtail-token", "ltl_", "alnum", 24, 60),
    ("mailchimp-token", "md-", "dense", 22, 22),
    ("mailgun-token", "key- pubkey-", "hex", 32, 32),
    ("mapbox-token", "sk.eyJ tk.eyJ", "dotted", 40, 200),
    ("materialize-token", "mzp_", "hex", 60, 64),
    ("mercadopago-token", "APP_USR- TEST-", "dense", 60, 90),
    ("mercury-token", "secret-token:mercury_production_", "word", 40, 120),
    ("mergify-token", "mka_", "dense", 24, 80),
    ("midtrans-token", "Mid-server- SB-Mid-server-", "dense", 20, 40),
    ("modal-token", "ak- as-", "alnum", 22, 22),
    ("mongodb-token", "mdb_sa_sk_", "dense", 30, 60),
    ("neon-token", "napi_", "alnum", 40, 80),
    ("netlify-token", "nfp_ nfc_", "alnum", 30, 50),
    ("new-relic-token", "NRAA-", "hex", 27, 27),
    ("new-relic-token", "NRAK-", "upper", 27, 27),
    ("new-relic-token", "NRII- NRIQ-", "dense", 32, 32),
    ("new-relic-token", "NRJS-", "hex", 19, 19),
    ("new-relic-token", "NRRA-", "hex", 42, 42),
    ("new-relic-token", "NRSP-", "dense", 32, 40),
    ("nightfall-token", "NF-", "alnum", 30, 60),
    ("nomic-token", "nk-", "dense", 40, 60),
    ("notion-token", "ntn_", "alnum", 40, 50),
    ("notion-token", "secret_", "alnum", 43, 43),
    ("npm-token", "npm_", "alnum", 36, 36),
    ("nuget-token", "oy2", "lower", 43, 43),
    ("nvidia-token", "nvapi-", "dense", 60, 70),
    ("octopus-token", "API-", "upper", 24, 32),
    ("onepassword-key", "A3-", "upper-dashed", 34, 38),
    ("onepassword-token", "ops_eyJ", "base64", 60, 2000),
    ("onesignal-token", "os_v2_app_ os_v2_org_", "lower", 60, 120),
    ("onfido-token", "api_live. api_live_us. api_live_ca. api_sandbox.", "dotted", 30, 80),
    ("openai-token", "sk-", "alnum", 20, 64),
    ("openai-token", "sk-proj- sk-svcacct- sk-admin- sk-None-", "dense", 20, LOOSE),
    ("openrouter-token", "sk-or-v1-", "hex", 60, 64),
    ("openshift-token", "sha256~", "dense", 43, 43),
    ("ory-token", "ory_pat_ ory_at_ ory_rt_ ory_ac_ ory_st_ ory_apikey_", "dotted", 30, 120),
    ("packagist-token", "packagist_", "word", 60, 90),
    (
        "packagist-token",
        "packagist_uut_ packagist_ust_ packagist_oat_ packagist_ors_",
        "hex",
        40,
        80,
    ),
    ("paddle-token", "pdl_live_apikey_ pdl_sdbx_apikey_", "word", 40, 80),
    ("paypal-token", "access_token$production$", "word", 40, 60),
    ("perplexity-token", "pplx-", "alnum", 40, 60),
    ("persona-token", "persona_production_ persona_sandbox_", "uuid", 36, 36),
    ("pinecone-token", "pcsk_", "word", 50, 90),
    ("pinterest-token", "pina_ pinr.", "word", 50, 120),
    ("plaid-token", "access-production- access-sandbox- access-development-", "uuid", 36, 36),
    ("plane-token", "plane_api_", "hex", 32, 32),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "dotted", 30, 70),
    ("polar-token", "polar_pat_", "alnum", 30, 60),
    ("posthog-token", "phx_ phs_", "alnum", 40, 60),
    ("postman-token", "PMAK-", "uuid", 59, 59),
    ("prefect-token", "pnu_", "alnum", 36, 36),
    ("pubnub-secret", "sec-c-", "base64", 46, 52),
    ("pulumi-token", "pul-", "hex", 40, 40),
    ("pypi-token", "pypi-", "dense", 50, 1000),
    ("qase-token", "qase_", "alnum", 40, 70),
    ("railway-token", "rlwy_", "alnum", 24, 80),
    ("ramp-token", "ramp_sec_ ramp_tok_", "alnum", 40, 60),
    ("razorpay-token", "rzp_live_ rzp_test_", "alnum", 14, 14),
    ("readme-token", "rdme_", "lower", 60, 80),
    ("render-token", "rnd_", "alnum", 28, 40),
    ("replicate-token", "r8_", "alnum", 37, 37),
    ("resend-token", "re_", "word", 24, 40),
    ("riot-token", "RGAPI-", "uuid", 36, 36),
    ("roboflow-token", "rf_", "alnum", 20, 28),
    ("rootly-token", "rootly_", "hex", 60, 64),
    ("rubygems-token", "rubygems_", "hex", 48, 48),
    ("runpod-token", "rpa_", "alnum", 40, 60),
    ("samsara-token", "samsara_api_", "alnum", 28, 40),
    ("scaleway-token", "SCW", "upper", 17, 17),
    ("scalingo-token", "tk-us-", "dense", 48, 48),
    ("segment-token", "sgp_", "word", 40, 80),
    ("sendgrid-token", "SG.", "dotted", 60, 70),
    ("sentry-token", "sntryi_", "hex", 60, 64),
    ("sentry-token", "sntrys_", "dotted", 60, LOOSE),
    ("sentry-token", "sntryu_", "hex", 60, 64),
    ("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", "alnum", 16, 40),
    ("shippo-token", "shippo_live_ shippo_test_", "hex", 40, 40),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_ shprt_", "hex", 32, 38),
    ("sindri-token", "sindri_", "alnum", 28, 40),
    ("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo-", "dense", 20, 200),
    ("slack-token", "xoxc- xoxe- xapp- xwfp-", "dense", 20, 200),
    ("slack-token", "xoxd-", "dotted", 20, LOOSE),
    ("slack-token", "xoxe.xox", "dense", 30, 300),
    ("snyk-token", "snyk_uat. snyk_sat.", "dotted", 40, 120),
    ("socket-token", "sktsec_", "dense", 30, 80),
    ("sonar-token", "sqp_ squ_ sqa_", "hex", 40, 40),
    ("sourcegraph-token", "slk_", "hex", 64, 64),
    ("spotify-token", "BQ", "dense", 140, 400),
    ("square-token", "EAAA", "dense", 56, 62),
    ("square-token", "sq0atp-", "dense", 22, 22),
    ("square-token", "sq0csp-", "dense", 40, 46),
    ("statsig-token", "secret-", "alnum", 40, 60),
    ("stripe-token", "sk_live_ sk_test_ rk_live_ rk_test_ rk_prod_ sk_prod_", "alnum", 16, 250),
    ("stripe-webhook-secret", "whsec_", "base64", 24, 64),
    ("stytch-token", "secret-live-", "dense", 40, 60),
    ("supabase-token", "sb_secret_", "dense", 26, 60),
    ("supabase-token", "sbp_", "hex", 40, 40),
    ("svix-token", "testsk_", "dotted", 30, 60),
    ("tailscale-token", "tskey-", "dense", 20, 100),
    ("tavily-token", "tvly-", "dense", 26, 60),
    ("telnyx-token", "KEY0", "dense", 50, 60),
    ("tencent-access-key", "AKID", "alnum", 32, 36),
    ("thunderstore-token", "tss_", "alnum", 30, 60),
    ("tinybird-token", "p.eyJ", "dotted", 60, 250),
    ("together-token", "tgp_v1_", "dense", 36, 60),
    ("trello-token", "ATTA", "hex", 64, 72),
    ("trigger-token", "tr_dev_ tr_prod_ tr_pat_ tr_stg_", "alnum", 20, 40),
    ("twilio-token", "SK", "hex", 32, 32),
    ("twitter-token", "AAAAAAAAAAAAAAAAAAAAA", "dotted", 60, 200),
    ("typeform-token", "tfp_", "dotted", 40, 70),
    ("ubidots-token", "BBFF-", "alnum", 28, 40),
    ("unkey-token", "unkey_", "alnum", 20, 60),
    ("valtown-token", "vtwn_", "alnum", 20, 60),
    ("vault-token", "hvb.", "dense", 24, 400),
    ("vault-token", "hvs. hvr.", "dense", 24, 300),
    ("vault-token", "s.", "alnum", 24, 24),
    ("vercel-token", "vcp_ vck_", "alnum", 24, 80),
    ("vercel-token", "vercel_blob_rw_", "word", 30, 80),
    ("volcengine-key", "AKLT", "alnum", 40, 50),
    ("voyage-token", "pa-", "dense", 40, 48),
    ("wakatime-token", "waka_", "uuid", 36, 36),
    ("wandb-token", "wandb_v1_", "word", 40, 100),
    ("wix-token", "IST.", "dotted", 100, 1500),
    ("woocommerce-token", "ck_ cs_", "hex", 40, 40),
    ("workos-token", "sk_live_", "base64", 40, 100),
    ("xai-token", "xai-", "alnum", 60, 90),
    ("xata-token", "xau_", "alnum", 30, 60),
    ("xendit-token", "xnd_production_", "alnum", 40, 80),
    ("yandex-token", "AQVN YCP", "dense", 35, 40),
    ("yandex-token", "YCAJE", "dense", 20, 36),
    ("zapier-token", "sk-ak-", "alnum", 40, 60),
    ("zitadel-token", "zitadel_", "dense", 40, 120),
    ("zuplo-token", "zpka_", "word", 30, 60),
)

SHORTEST = 16
"""The fewest characters of a token with its prefix."""


_WITHOUT_LETTERS = ("hex", "uuid", "upper", "upper-dashed")
"""Alphabets that words are not written in."""
_TAILS: dict[str, list[tuple[str, Pattern, bool]]] = {}
"""For each prefix, the shortest first: kind, what follows it, and whether that could be words."""
for _kind, _prefixes, _name, _least, _most in ROWS:
    _letters = ALPHABETS[_name]
    _source = f"{_letters}{{{_least},{_most}}}(?!{_letters}){'={0,2}' * (_name == 'base64')}"
    for _prefix in _prefixes.split():
        _tail = (_kind, Pattern(_source), _name not in _WITHOUT_LETTERS)
        _TAILS.setdefault(_prefix, []).append(_tail)
_TAILS = {prefix: _TAILS[prefix] for prefix in sorted(_TAILS, key=len)}


def has_prefix(text: str, _lower: str = "") -> bool:
    """Return whether a prefix is in a word that is long enough for a token."""
    long_words = _long_words(text)
    return any(prefix in long_words for prefix in _TAILS)


def find(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every token that begins with a known prefix."""
    long_words = _long_words(text)
    found: dict[int, str] = {}
    for prefix in _TAILS:  # the shortest first: of several at one place the longest counts
        at = text.find(prefix) if prefix in long_words else -1
        while at >= 0:
            if _is_border(text, at):
                found[at] = prefix
            at = text.find(prefix, at + 1)
    done = 0
    for start in sorted(found):
        if start < done:  # inside of another prefix
            continue
        done = start + len(found[start])
        for kind, pattern, could_be_words in _TAILS[found[start]]:
            match = pattern.match(text, done)
            if match is None:
                continue
            token = match[0].rstrip(".-=") if text[match.end() - 1] in ".-" else match[0]
            if not is_filler(token) and not (could_be_words and _is_worded(token)):
                yield kind, start, done + len(token)
                break


def _is_worded(token: str) -> bool:
    """Return whether what is behind a prefix reads like words, as a name in code would."""
    digits = sum(map(str.isdigit, token))
    return is_wordlike(token, 0.6) and not (digits > 1 and restlessness(token) > 0.4)


SELF_NAMED = Pattern(
    r"(?<![\w./+@-])(?P<prefix>[A-Za-z][A-Za-z0-9]{0,15}(?:(?P<sign>[_.-])[A-Za-z0-9]{1,12}){1,3})(?P=sign)"
    r"(?P<rest>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9]{20,120})(?![A-Za-z0-9_-])"
)
"""A string behind a prefix of two parts or more, as `acme_sk_…`."""
STRONG_PARTS = frozenset(
    str.split(
        "sk secret token tok pat apikey auth live adm admin priv private access bearer svcacct "
        "production"
    )
)
PARTS = STRONG_PARTS | frozenset(str.split("api key prod test rt at oauth refresh prd"))
"""Parts of a prefix that say that what follows opens something; the others may name a release."""
_SIGNS = Pattern(r"[_.-]")


def self_named(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of tokens whose prefix says what they are, of whatever vendor."""
    for match in SELF_NAMED.finditer(text):
        parts = {part.lower() for part in _SIGNS.split(match["prefix"])}
        rest = match["rest"]
        is_strong = not parts.isdisjoint(STRONG_PARTS) or any(
            part.endswith(("key", "token", "secret")) and part != "key" for part in parts
        )
        if not (is_strong or parts & PARTS) or is_filler(rest) or rest.isalpha() or rest.isdigit():
            continue
        if is_hex_or_uuid(rest):
            is_token = is_strong or ("-" not in rest and len(rest) not in (40, 64))
        else:
            is_token = not is_wordlike(rest)
        if is_token and len(set(rest)) > 7:
            yield "vendor-token", match.start(), match.end()


def has_long_word(text: str, _lower: str = "") -> bool:
    """Return whether a word may be a token that is named by its prefix."""
    return any(
        not word.isalpha() and ("-" in word[16:] or max(map(len, _SIGNS.split(word))) > 19)
        for word in text.split()
        if len(word) > 25
    )


@lru_cache(1)
def _long_words(text: str) -> str:
    return "\n".join([word for word in text.split() if len(word) >= SHORTEST])


def _is_border(text: str, at: int) -> bool:
    """Return whether a token may begin here: behind a sign, or an escaped line end."""
    before = text[at - 1 : at]
    is_sign = not (before.isascii() and before.isalnum())
    return is_sign or (before in "nrt" and text[at - 2 : at - 1] == "\\")
