"""The words that announce a secret beside them, and the words that take the announcement back."""

from __future__ import annotations

from memtool.gate.pattern import Pattern
from memtool.gate.triggers import is_announced

PERSON_WORDS = (
    r"pass[ _-]?words?|passwd|passw|pwd|pass[ _-]?phrase|pass[ _-]?code|kennwort|passwort|"
    r"mot[ _]de[ _]passe|motdepasse|contrase[ñn]a|clave|senha|has[łl]o|wachtwoord|lösenord|"
    r"adgangskode|parola|şifre|salasana|heslo|jelszó|пароль|密码|密碼|口令|パスワード|비밀번호"
)
"""What is announced is for people to type: shorter, with signs, maybe a phrase."""

SHORT_PERSON_WORDS = (
    r"(?<![a-z0-9+/])(?:pw|pass|psw|kata sandi|pin(?: code)?|credentials?|creds?|"
    r"login|log in|logs in|auth|requirepass|masterauth)(?![a-z0-9+/])"
)
"""Words of the same kind that are parts of other words, and need their borders."""

MACHINE_WORDS = (
    r"secrets?|tokens?|jeton|geheim(?:nis)?|chave|bearer|cookie|salt|dsn|jwt|"
    r"pat(?=[ \"'`:=])|webhook|keys?(?![a-z])"
)
"""What is announced is made by a machine: longer, letters and digits mixed."""

FOREIGN_WORDS = r"(?:zugangs|api)?schlüssel|clé|токен|секрет|ключ|密钥|令牌|トークン|토큰"
"""Words of the same kind that no ASCII text holds; without them it is searched at half the cost."""

SURE_KEYS = frozenset(
    str.split(
        "api app auth access account admin application client consumer crypt enc encrypt "
        "encryption deploy hmac ingest integration license licence master private secret "
        "security service shared sharedaccess signing storage subscription write recovery "
        "preshared"
    )
)
"""Keys that are secret by their name; the others (`the key`) need a stronger value."""

NOT_SECRET_BEFORE = frozenset(
    str.split(
        "public pub primary foreign cache partition sort shard row map dict json yaml config "
        "hash idempotency idempotent csrf xsrf page next prev previous continuation cursor "
        "sync pagination special eos bos pad unk stop max min num per design no without non "
        "lexer parser syntax composite unique natural surrogate lookup object registry hot "
        "arrow enter escape tab shift monkey whiskey turkey index dictionary routing message "
        "group dedup deduplication translation i18n locale query search metric label tag "
        "feature flag verify verification verifying host input output prompt completion reset "
        "forgot known sealed build commit"
    )
)
"""A word right before the announcing one that makes it harmless: `public key`, `page token`."""

NOT_SECRET_AFTER = frozenset(
    str.split(
        "id ids name names hash hashes hashed hashing digest checksum fingerprint thumbprint "
        "type types kind count counts limit limits budget path paths file files filename dir "
        "url urls uri endpoint ttl expiry expires expiration expire lifetime age length len "
        "size min max policy policies field fields column columns format prefix suffix regex "
        "pattern alias label title rotation rotated version versions manager store provider "
        "class reset prompt hint input placeholder template ref reference usage used rate "
        "index at on off enabled disabled required sha sha1 sha256 sha512 md5 commit revision "
        "uuid number algorithm algo alg encoding scheme strength minimum maximum created "
        "updated changed last status state scope scopes audience issuer bucket role arn group "
        "user owner email history table page form screen test tests module method function "
        "handler helper util utils service validator validation check generator cost rounds "
        "mgr identity"
    )
)
"""A word of the identifier after the announcing one: `password_hash`, `token_url`, `key id`."""

HASH_WORDS = Pattern(
    r"\b(?:sha-?\d{0,3}|md5|hash(?:es|ed)?|digest|checksum|commit(?:ted)?|revision|rev|blob|tree|ref|"
    r"fingerprint|thumbprint|e?tag|uuid|guid|ids?|version|branch|merge[ds]?|request|trace|span|"
    r"public|row|record|ticket|job|run|build|image|layer|digest|cache|epoch|nonce|integrity|"
    r"fixed|introduced|since|landed|reverted|bisect(?:ed)?)\b"
)
"""Between the announcing word and hex or a UUID these say that it is a hash or a name."""

REQUEST_TOKENS = Pattern(r"(?:client|lock|change|request|idempotency)[ _-]?token")
"""What names one request and not who may make it: such a token is a UUID."""

COPULA = (
    r"(?:is|was|are|were|be|to|ist|lautet|war|heißt|est|était|es|era|é|è|är|är:|on|er|jest|to jest|"
    r"это|equals|becomes?|became|remains|stays|reads|says|said|being|gets?|got|using|with|as|['\u2019]s)"
)
FILLING = (
    r"(?:now|still|currently|just|simply|set|set to|literally|again|always|temporarily|only|"
    r"changed|changed to|jetzt|now set to|maintenant|ahora|agora|nu|probably|called|called:|"
    r"reset to|to|"
    r"rotated to|updated to|value|the following|following|this|here|below|is|the|string)"
)


_TYPED = ("password", Pattern(PERSON_WORDS)), ("password", Pattern(SHORT_PERSON_WORDS))
_PLAIN = (*_TYPED, ("secret", Pattern(MACHINE_WORDS)))
_FOREIGN = (*_TYPED, ("secret", Pattern(f"{MACHINE_WORDS}|{FOREIGN_WORDS}")))


def patterns(lower: str) -> tuple[tuple[str, Pattern], ...]:
    """Return kinds with the patterns of the words that may announce them in a text.

    The text is in lower case. Words without a border are apart: their pattern is skipped through
    by first letters.
    """
    if not is_announced(lower, lower):
        return ()
    return _PLAIN if lower.isascii() else _FOREIGN


_PARTED = Pattern(r"[ _.-]")
_TAIL_PARTS = Pattern(r"[A-Z]?[a-z]+\d*|[A-Z]+|\d+")
_KEY_HEAD = Pattern(r"([a-z]{2,16})[ _.-]?\Z")
_WORD_BEFORE = Pattern(r"([a-z0-9]{1,16})[ _.\"'`-]{0,3}\Z")


def announced_from(lower: str, start: int, end: int) -> int | None:
    """Return where the announcement begins, with the word before a `key`; None if it is none."""
    if lower.startswith("key", start):
        head = _KEY_HEAD.search(lower, max(0, start - 20), start)
        if head is None:
            return None
        glued = head.end(1) == start
        if glued and head[1] not in SURE_KEYS and not is_sure_ending(head[1]):
            return None
        start = head.start(1)
    return None if _is_taken_back(lower, start, end) else start


def is_sure_ending(head: str) -> bool:
    """Say whether a word written together with `key` names a secret key."""
    return head.endswith(
        ("api", "access", "secret", "private", "master", "account", "auth", "signing")
    )


def _is_taken_back(lower: str, start: int, end: int) -> bool:
    """Say whether the word before makes the announcement harmless: `public key`."""
    word = lower[start:end]
    if word.rstrip("s").endswith("key") and _PARTED.split(word)[0] in NOT_SECRET_BEFORE:
        return True
    near = _WORD_BEFORE.search(lower, max(0, start - 16), start)
    return near is not None and near[1] in NOT_SECRET_BEFORE


def is_tail_harmless(tail: str) -> bool:
    """Say whether the rest of the identifier makes it harmless: `password_hash`, `tokenUrl`."""
    parts = _TAIL_PARTS.findall(tail)
    return any(part.lower() in NOT_SECRET_AFTER for part in parts)
