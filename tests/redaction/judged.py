# ruff: noqa: RUF001
"""A corpus that judges the detectors: it was written without sight of them.

Every note with a secret holds one, perhaps in several pieces. No value stands in this file: in the
texts below `⟦...⟧` marks what must not stay, either by the name of a draw (`⟦pw⟧`) or by a format
of `draw_value` (`⟦{a36}⟧`); formats outside of the marks are harmless noise.

`=== kind` begins a group of texts, which a line `--` divides; in a group `=== kind*` each line is
a text.
"""

from __future__ import annotations

import base64
import datetime
import json
import random
import re
import string
import urllib.parse
from collections.abc import Callable, Iterator

from redaction.corpus import Note, draw_value

WORDS = (
    "Harbor", "Walnut", "Bicycle", "Marmot", "Lantern", "Oyster", "Gravel", "Pelican", "Tundra",
    "Biscuit", "Saffron", "Canyon", "Gitarre", "Zebra", "Montagne", "Girasol", "Tulipan", "Kaiser",
    "Rosso", "Cometa", "Berlin", "Lisboa", "Krakow", "Osaka", "Anadolu", "Sverige", "Liverpool",
    "Juventus", "Matilda", "Sebastian", "Chocolate", "Manzana", "Schnitzel", "Vrijdag", "Haslo",
)  # fmt: skip
SEED_WORDS = (
    "abandon", "absorb", "acoustic", "actress", "balcony", "bamboo", "biology", "blossom",
    "cactus", "canoe", "caution", "dentist", "depart", "diesel", "dolphin", "eager", "elbow",
    "emerge", "enroll", "fabric", "faculty", "fiscal", "fossil", "galaxy", "garment", "giraffe",
    "glimpse", "hamster", "hazard", "helmet", "hybrid", "inflict", "inhale", "insect", "isolate",
    "jacket", "jaguar", "jungle", "ketchup", "kidney", "kiwi", "ladder", "laundry", "lizard",
    "maple", "margin", "mixture", "mosquito", "naive", "neglect", "nephew", "oblige", "obscure",
    "olive", "ostrich", "panther", "pelican", "pioneer", "quantum", "quarter", "rabbit", "raccoon",
    "salmon", "scatter", "shrimp", "tackle", "tobacco", "trophy", "umbrella", "unveil", "velvet",
    "vintage", "walnut", "whisper", "wrestle", "yellow", "zebra", "zone",
)  # fmt: skip
LEADS = (
    "Looked into this again after lunch, the staging box was the odd one out.",
    "Found while cleaning up the old runbook.",
    "## Context\n\nThe importer ran twice last night and the second run hung.",
    "Notes from pairing with the platform team.",
    "Status: accepted. Supersedes the note from spring.",
    "Das stand noch im alten Wiki, bitte beim Umzug beachten.",
    "Résumé de la réunion de lundi, à relire avant la mise en production.",
    "Quedó pendiente de la semana pasada, lo dejo anotado aquí.",
    "前回の作業ログからの抜粋です。",
    "> quoting the ticket below, formatting as it came",
    "What I tried, in order:",
    "Session resumed; continuing with the deploy step.",
)
TAILS = (
    "The retry then went through in 4.2 s.",
    "Next: write the regression test and close the ticket.",
    "Nothing else changed between the two runs.",
    "See docs/runbooks/restore.md for the rest of the procedure.",
    "Danach lief der Job wieder normal.",
    "À vérifier de nouveau vendredi.",
    "Luego revisar los registros del balanceador.",
    "Consequences: one more moving part, but the rollback is simple.",
    "Exit code 0, log kept for seven days.",
)

TOKENS = """
doppler dp.pt.{a43}
doppler-service dp.st.dev.{a43}
planetscale-password pscale_pw_{d43}
planetscale-token pscale_tkn_{d43}
linear lin_api_{a40}
notion ntn_{n11}{a35}
airtable pat{a14}.{h64}
postman PMAK-{h24}-{h34}
figma figd_{d40}
grafana glsa_{a32}_{h8}
databricks dapi{h32}
newrelic NRAK-{u27}
pulumi pul-{h40}
terraform {a14}.atlasv1.{d67}
flyio fo1_{d43}
render rnd_{a28}
supabase sbp_{h40}
vault hvs.{d94}
dynatrace dt0c01.{u24}.{u64}
sentry sntryu_{h64}
buildkite bkua_{h40}
circleci CCIPAT_{a22}_{h40}
prefect pnu_{a36}
readme rdme_{l70}
shippo shippo_live_{h40}
easypost EZAK{a54}
duffel duffel_live_{d43}
frameio fio-u-{d64}
flutterwave FLWSECK-{h32}-X
typeform tfp_{a44}_{a14}
tailscale tskey-auth-{a12}CNTRL-{a32}
pypi pypi-AgEIcHlwaS5vcmc{d150}
rubygems rubygems_{h48}
crates cio{a32}
clojars CLOJARS_{h60}
replicate r8_{a37}
groq gsk_{a52}
perplexity pplx-{a48}
xai xai-{a80}
brevo xkeysib-{h64}-{a16}
adafruit aio_{a28}
contentful CFPAT-{d43}
hubspot pat-eu1-{g}
plaid access-production-{g}
sonarqube squ_{h40}
artifactory AKCp8{a68}
openshift sha256~{d43}
infracost ico-{a32}
launchdarkly sdk-{g}
yandex AQVN{d35}
resend re_{a8}_{a24}
nuget oy2{l43}
heroku HRKU-AA{d58}
neon napi_{l64}
langfuse sk-lf-{g}
langsmith lsv2_pt_{h32}_{h10}
pinecone pcsk_{a6}_{a63}
dockerhub dckr_pat_{d27}
bitbucket ATBB{a32}
netlify nfp_{a36}
aiven AVNS_{d19}
sourcegraph sgp_{h16}_{h40}
harness pat.{a22}.{h24}.{a20}
rootly rootly_{h64}
maxmind {a6}_{a29}_mmk
definednet dnkey-{u26}-{u52}
telegram {n10}:AA{d33}
asana 1/{n16}:{h32}
"""
TOKEN_CARRIERS = (
    "the old one was {s}, rotate it after the cut-over",
    "export API_TOKEN={s}",
    "  - name: API_TOKEN\n    value: {s}",
    '{"baseUrl": "https://api.internal.example", "token": "{s}"}',
    "Authorization: Bearer {s}",
    "curl -sS -H 'Authorization: Bearer {s}' https://api.internal.example/v1/me | jq .id",
    "$ env | grep -i token\nX_TOKEN={s}\n$ make release",
    'const client = new Client({ auth: "{s}" });',
    "client = Client(token='{s}', timeout=30)",
    "| service | credential | owner |\n|---|---|---|\n| sync | {s} | Mira |",
    "I got a 401 with `{s}`, so it is scoped to the wrong workspace.",
    "hier der Schlüssel für die Pipeline: {s} (gilt bis Freitag)",
    "step 4: paste {s} when the wizard asks",
    "run: tool login --with-token {s} --quiet",
    "https://hooks.internal.example/in?token={s}&dry=1",
    '[auth]\ntoken = "{s}"\nretries = 3',
    '<add key="ServiceToken" value="{s}" />',
    "2026-03-02T07:14:55Z DEBUG outgoing headers X-Api-Key={s} attempt=2",
    "user: what did you use?\nassistant: I used {s} from the environment.",
    "- [ ] revoke {s}\n- [ ] issue a new one",
)
VARIABLES = """
ALGOLIA_ADMIN_API_KEY {h32}
DATADOG_APP_KEY {h40}
FASTLY_API_TOKEN {d32}
CLOUDFLARE_API_TOKEN {d40}
WANDB_API_KEY {h40}
ROLLBAR_ACCESS_TOKEN {h32}
TWILIO_AUTH_TOKEN {h32}
MIXPANEL_API_SECRET {h32}
ZOOM_CLIENT_SECRET {a32}
DEEPGRAM_API_KEY {h40}
ELEVENLABS_API_KEY {h32}
MISTRAL_API_KEY {a32}
COHERE_API_KEY {a40}
SCW_SECRET_KEY {g}
RAILWAY_TOKEN {g}
OPSGENIE_API_KEY {g}
HONEYCOMB_API_KEY {a22}
LINODE_TOKEN {h64}
VULTR_API_KEY {u36}
HCLOUD_TOKEN {a64}
OVH_APPLICATION_SECRET {a32}
B2_APPLICATION_KEY K005{a27}
SPLUNK_HEC_TOKEN {g}
CODECOV_TOKEN {g}
COVERALLS_REPO_TOKEN {a32}
TODOIST_API_TOKEN {h40}
TRELLO_TOKEN {h64}
PUSHER_APP_SECRET {h20}
PUSHOVER_TOKEN {l30}
OKTA_API_TOKEN 00{d40}
AUTH0_CLIENT_SECRET {d64}
BUNNY_ACCESS_KEY {g}
PAGERDUTY_TOKEN u+{a18}
STRAVA_CLIENT_SECRET {h40}
TWITCH_CLIENT_SECRET {l30}
SPOTIFY_CLIENT_SECRET {h32}
UNSPLASH_SECRET_KEY {d43}
SESSION_SIGNING_KEY {h64}
RAILS_MASTER_KEY {h32}
DJANGO_SECRET_KEY {d50}
"""
VARIABLE_CARRIERS = (
    "{k}={s}",
    'export {k}="{s}"',
    "{k}: {s}",
    'ENV {k}="{s}"',
    "      - {k}={s}",
    "fly secrets set {k}={s}",
    'os.environ["{k}"] = "{s}"',
    'process.env.{k} ??= "{s}";',
    '$env:{k} = "{s}"',
    'setx {k} "{s}"',
    '  "{k}": "{s}",',
    "docker run --rm -e {k}={s} registry.example/app:3",
    "In .env steht {k} = {s}, das muss in den Tresor.",
    "set -gx {k} {s}",
    "{k} => '{s}',",
    '{k} = "{s}"',
)

SECRETS = r'''
=== env
DB_HOST=10.2.0.14
DB_USER=ledger
DB_PASSWORD=⟦pw⟧
DB_POOL=12
--
# .env.production
APP_ENV=production
APP_KEY=base64:⟦{b43}=⟧
APP_DEBUG=false
--
MAIL_MAILER=smtp
MAIL_USERNAME=postbox
MAIL_PASSWORD='⟦pw⟧'
--
REDIS_PASS=⟦pwu⟧ # same for both shards
--
export JWT_SIGNING_SECRET=⟦{d48}⟧
--
PGPASSWORD=⟦pwu⟧ pg_dump -h db1 -U backup ledger > ledger.sql
--
POSTGRES_USER=grafana
POSTGRES_PASSWORD=⟦phrase⟧
=== yaml
datasource:
  url: jdbc:postgresql://db1:5432/ledger
  username: ledger
  password: ⟦pwu⟧
--
auth:
  enabled: true
  rootPassword: "⟦pw⟧"
  database: shop
--
smtp_auth_password: ⟦pwu⟧
smtp_smarthost: mail.example:587
--
- name: create user
  community.mysql.mysql_user:
    name: report
    password: "⟦pw⟧"
    priv: "shop.*:SELECT"
--
vault_admin_passphrase: >-
  ⟦phrase⟧
--
users:
  - {name: olga, role: admin, passwd: ⟦pwu⟧}
--
  webhook_secret: ⟦{h40}⟧
  events: [push, pull_request]
--
encryption:
  active: 2
  secretKey: ⟦{b43}=⟧
=== toml
[database]
user = "app"
password = "⟦pw⟧"
--
[[registries]]
name = "inner"
auth_token = "⟦{a40}⟧"
--
[session]
cookie_secret = '⟦{h64}⟧'
=== json
{"host": "db2", "user": "etl", "password": "⟦pw⟧", "port": 3306}
--
{
  "auths": {
    "registry.example": {"auth": "⟦basic⟧"}
  }
}
--
{"ConnectionStrings": {"Main": "Server=sql01;Database=Crm;User Id=crm;Password=⟦pwu⟧;"}}
--
{\"login\":\"ops\",\"password\":\"⟦pwu⟧\",\"mfa\":false}
--
{"type":"login","payload":"{\"user\":\"ines\",\"pwd\":\"⟦pwu⟧\"}"}
--
{"client_id": "billing-ui", "client_secret": "⟦{d40}⟧", "grant_type": "client_credentials"}
--
{"refresh_token": "⟦1//0{d60}⟧", "expires_in": 3599}
=== json-escaped
{"user":"kim","password":"⟦escaped⟧"}
--
"body": "{\"secret\":\"⟦escaped⟧\"}"
=== hcl
resource "aws_db_instance" "main" {
  username = "root"
  password = "⟦pwu⟧"
}
--
variable "admin_password" {
  type    = string
  default = "⟦pw⟧"
}
--
provider "vsphere" {
  user     = "svc-terraform"
  password = "⟦pwu⟧"
}
=== xml
<server>
  <id>releases</id>
  <username>deployer</username>
  <password>⟦pwu⟧</password>
</server>
--
<bean id="ds"><property name="password" value="⟦pwu⟧"/></bean>
--
<add name="Crm" connectionString="Data Source=sql01;User ID=crm;Pwd=⟦pwu⟧" />
--
<LocalAccount><Password><Value>⟦pwu⟧</Value><PlainText>true</PlainText></Password></LocalAccount>
=== properties
spring.datasource.username=shop
spring.datasource.password=⟦pw⟧
--
keystore.type=PKCS12
keystore.password = ⟦pwu⟧
--
sonar.login=ci
sonar.password:⟦pwu⟧
--
signing.keyId=24875D73
signing.password=⟦phrase⟧
=== ini
[client]
user = root
password = ⟦pwu⟧
--
[wifi-security]
key-mgmt=wpa-psk
psk=⟦phrase⟧
--
machine ftp.example login mirror password ⟦pwu⟧
--
db1.inner:5432:ledger:app:⟦pwu⟧
=== dockerfile
FROM eclipse-temurin:21
ENV SPRING_DATASOURCE_PASSWORD=⟦pwu⟧
EXPOSE 8080
--
ARG NPM_AUTH=⟦{g}⟧
RUN npm ci
--
RUN echo "root:⟦pwu⟧" | chpasswd
=== compose
services:
  db:
    image: mariadb:11
    environment:
      MARIADB_ROOT_PASSWORD: ⟦pw⟧
--
    command: redis-server --requirepass ⟦pwu⟧ --appendonly yes
--
    environment:
      - RABBITMQ_DEFAULT_USER=bus
      - RABBITMQ_DEFAULT_PASS=⟦pwu⟧
=== kubernetes
apiVersion: v1
kind: Secret
metadata:
  name: db
data:
  username: YXBw
  password: ⟦b64pw⟧
--
kind: Secret
apiVersion: v1
stringData:
  admin-password: ⟦pw⟧
--
kubectl create secret generic db --from-literal=user=app --from-literal=password=⟦pwu⟧
--
apiVersion: v1
kind: Secret
type: kubernetes.io/dockerconfigjson
data:
  .dockerconfigjson: ⟦b64docker⟧
=== helm*
helm upgrade shop bitnami/postgresql --set auth.username=shop --set auth.password=⟦pwu⟧
helm install kc ./keycloak --set-string adminPassword='⟦pw⟧' -n auth
=== cli*
mysql -h db1 -u root -p⟦pwu⟧ shop < dump.sql
mysqldump --user=backup --password=⟦pwu⟧ --all-databases > all.sql
psql "host=db1 dbname=ledger user=app password=⟦pwu⟧ sslmode=require"
redis-cli -h cache1 -a ⟦pwu⟧ --no-auth-warning FLUSHALL
htpasswd -bB /etc/nginx/.htpasswd olga ⟦pwu⟧
curl -u admin:⟦pwu⟧ http://nexus.inner:8081/service/rest/v1/status
curl --user 'jenkins:⟦pw⟧' -X POST http://ci.inner/job/nightly/build
sshpass -p ⟦pwu⟧ ssh -o StrictHostKeyChecking=no root@10.4.0.9 uptime
sshpass -p '⟦pw⟧' scp dump.tgz store@nas:/volume1/backup/
ldapsearch -x -H ldap://dc1 -D cn=reader,dc=corp -w ⟦pwu⟧ -b dc=corp
openssl rsa -in server.key -passin pass:⟦pwu⟧ -out plain.key
openssl enc -d -aes-256-cbc -in x.enc -k ⟦pwu⟧ -out x.tar
PsExec.exe \\fileserver -u CORP\adm -p ⟦pwu⟧ cmd /c whoami
net use Z: \\nas\share /user:CORP\backup ⟦pwu⟧
net user helpdesk ⟦pwu⟧ /add
docker login registry.example -u robot -p ⟦pwu⟧
mongosh --host mongo1 -u root -p ⟦pwu⟧ --authenticationDatabase admin
keytool -list -keystore app.jks -storepass ⟦pwu⟧
sqlcmd -S sql01 -U sa -P ⟦pwu⟧ -Q "SELECT @@VERSION"
rclone obscure ⟦pwu⟧
echo ⟦pwu⟧ | sudo -S systemctl restart nginx
smbclient //nas/share -U 'corp\mira%⟦pwu⟧' -c ls
wget --http-user=mirror --http-password=⟦pwu⟧ https://dl.example/x.iso
xfreerdp /v:win11 /u:lab /p:⟦pwu⟧ /size:1600x900
zip -P ⟦pwu⟧ out.zip report.xlsx
7z x archive.7z -p⟦pwu⟧ -oout
impala-shell -l -u etl --ldap_password_cmd="echo -n ⟦pwu⟧"
ansible-playbook site.yml -e ansible_become_pass=⟦pwu⟧
cryptsetup luksOpen /dev/sdb1 data <<< "⟦phrase⟧"
nmcli dev wifi connect Studio5 password ⟦pwu⟧
az login --service-principal -u {g} -p ⟦{a3}8Q~{d34}⟧ --tenant {g}
ipmitool -I lanplus -H bmc7 -U ADMIN -P ⟦pwu⟧ power cycle
snmpwalk -v3 -u mon -l authPriv -a SHA -A ⟦pwu⟧ 10.0.0.2
borg init -e repokey ; export BORG_PASSPHRASE='⟦phrase⟧'
vncviewer -passwd <(vncpasswd -f <<<"⟦pwu⟧") desk3:1
=== sql*
ALTER ROLE ledger WITH LOGIN PASSWORD '⟦pw⟧';
CREATE USER 'report'@'%' IDENTIFIED BY '⟦pw⟧';
CREATE LOGIN crm WITH PASSWORD = N'⟦pw⟧', CHECK_POLICY = OFF;
SET PASSWORD FOR 'app'@'localhost' = PASSWORD('⟦pwu⟧');
CREATE USER etl IDENTIFIED BY "⟦pwu⟧" DEFAULT TABLESPACE users;
UPDATE wp_users SET user_pass = MD5('⟦pwu⟧') WHERE ID = 1;
CREATE USER clicks IDENTIFIED WITH sha256_password BY '⟦pw⟧'
INSERT INTO accounts (login, password) VALUES ('mira', '⟦pw⟧');
=== url*
DATABASE_URL=postgres://ledger:⟦pwu⟧@db1.inner:5432/ledger?sslmode=require
the worker reads amqp://bus:⟦pwu⟧@mq1:5672/%2Fjobs and dies
CACHE=redis://:⟦pwu⟧@cache1:6379/0
mongodb+srv://shop:⟦pwu⟧@cluster7.example.net/?retryWrites=true
git clone https://deploy:⟦{a28}⟧@git.inner/ops/charts.git
sqlalchemy.url = mysql+pymysql://root:⟦pwu⟧@127.0.0.1/shop
ftp://mirror:⟦pwu⟧@ftp.example/pub/
http_proxy=http://corp%5Cmira:⟦pwu⟧@proxy.corp:3128
rtsp://viewer:⟦pwu⟧@192.168.8.31:554/stream1
jdbc:oracle:thin:crm/⟦pwu⟧@//ora1:1521/CRM
jdbc:sqlserver://sql01;databaseName=Crm;user=crm;password=⟦pwu⟧;encrypt=true
ldap://cn=reader,dc=corp:⟦pwu⟧@dc1:389
clickhouse://default:⟦pwu⟧@ch1:9000/events
Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=⟦{b43}=⟧
DefaultEndpointsProtocol=https;AccountName=logs7;AccountKey=⟦{b86}==⟧;EndpointSuffix=core.windows.net
snowflake://etl:⟦pwu⟧@xy12345.eu-central-1/dwh
smtp://postbox:⟦percent⟧@mail.example:587
=== signed-url*
https://files.s3.eu-west-1.amazonaws.com/r.pdf?X-Amz-Expires=900&X-Amz-Signature=⟦{h64}⟧
https://d111.cloudfront.net/v.mp4?Expires=1790000000&Signature=⟦{d171}⟧__&Key-Pair-Id=K2JCJM
https://storage.googleapis.com/b/o.csv?X-Goog-Expires=3600&X-Goog-Signature=⟦{h256}⟧
https://logs7.blob.core.windows.net/c/a.log?sv=2022-11-02&sp=r&sig=⟦{a40}⟧%3D
https://files.s3.amazonaws.com/x?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=⟦{a26}⟧%3D&Expires=17
https://app.example/reset-password?uid=41&token=⟦{d43}⟧
https://share.example/join?pwd=⟦{a32}⟧
magic link from the mail: https://app.example/login/verify?code=⟦{a40}⟧&next=%2F
=== oauth*
GET /callback?code=⟦4/0A{d70}⟧&scope=email&state=xyz HTTP/1.1
redirected to https://app.example/oauth/cb?state=s1&code=⟦{h40}⟧
http://localhost:8765/#access_token=⟦{d60}⟧&token_type=bearer&expires_in=3600
client_secret=⟦{d36}⟧&grant_type=authorization_code&client_id=web
=== webhook*
https://discord.com/api/webhooks/{n18}/⟦{d68}⟧
https://acme.webhook.office.com/webhookb2/{g}@{g}/IncomingWebhook/⟦{h32}⟧/{g}
https://hooks.zapier.com/hooks/catch/{n7}/⟦{l7}⟧/
https://chat.googleapis.com/v1/spaces/AAA/messages?key=k1&token=⟦{d43}⟧%3D
https://oapi.dingtalk.com/robot/send?access_token=⟦{h64}⟧
https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=⟦{g}⟧
https://open.feishu.cn/open-apis/bot/v2/hook/⟦{g}⟧
=== jwt*
session token in devtools: ⟦jwt⟧
{"id_token":"⟦jwt⟧","token_type":"Bearer"}
curl -H "Authorization: Bearer ⟦jwt⟧" https://api.example/orders
Set-Cookie: auth=⟦jwt⟧; Path=/; HttpOnly
wscat -c "wss://live.example/socket?jwt=⟦jwt⟧"
=== private-key
-----BEGIN RSA PRIVATE KEY-----
⟦rsa⟧
-----END RSA PRIVATE KEY-----
--
tls.key: |
    -----BEGIN PRIVATE KEY-----
    ⟦rsa4⟧
    -----END PRIVATE KEY-----
--
-----BEGIN OPENSSH PRIVATE KEY-----
⟦openssh⟧
-----END OPENSSH PRIVATE KEY-----
--
-----BEGIN EC PRIVATE KEY-----
⟦MHcCAQEEI{b55}⟧
⟦{b64}⟧
⟦{b34}==⟧
-----END EC PRIVATE KEY-----
--
-----BEGIN PRIVATE KEY-----
⟦MC4CAQAwBQYDK2VwBCIEI{b42}⟧
-----END PRIVATE KEY-----
--
"private_key": "-----BEGIN PRIVATE KEY-----\n⟦{b64}⟧\n⟦{b64}⟧\n⟦{b64}⟧\n-----END PRIVATE KEY-----\n"
--
-----BEGIN PGP PRIVATE KEY BLOCK-----

⟦lQdGBG{b58}⟧
⟦{b64}⟧
⟦{b64}⟧
⟦{b40}⟧
=Xk1d
-----END PGP PRIVATE KEY BLOCK-----
--
-----BEGIN ENCRYPTED PRIVATE KEY-----
⟦MIIFHDBOBgkqhkiG9w0BBQ0wQTApBgkqhkiG9w0BBQwwHA{b17}⟧
⟦{b64}⟧
⟦{b64}⟧
-----END ENCRYPTED PRIVATE KEY-----
--
+ KEY = """-----BEGIN RSA PRIVATE KEY-----
+ ⟦MIIEpAIBAAKCAQEA{b48}⟧
+ ⟦{b64}⟧
+ ⟦{b64}⟧
+ ⟦{b20}⟧
+ -----END RSA PRIVATE KEY-----"""
--
-----BEGIN OpenVPN Static key V1-----
⟦{h32}⟧
⟦{h32}⟧
⟦{h32}⟧
⟦{h32}⟧
-----END OpenVPN Static key V1-----
--
# created: 2026-01-04T10:00:00+01:00
⟦age⟧
--
[Interface]
PrivateKey = ⟦{b42}8=⟧
Address = 10.8.0.2/24
--
PuTTY-User-Key-File-3: ssh-ed25519
Private-Lines: 1
⟦AAAAI{b43}⟧
=== mnemonic
MNEMONIC="⟦w4⟧ ⟦w4⟧ ⟦w4⟧"
--
wallet seed phrase: ⟦w4⟧ ⟦w4⟧ ⟦w4⟧
--
const mnemonic = '⟦w4⟧ ⟦w4⟧ ⟦w4⟧ ⟦w4⟧ ⟦w4⟧ ⟦w4⟧';
--
DEPLOYER_PRIVATE_KEY=0x⟦{h64}⟧
=== totp
otpauth://totp/Acme:olga?secret=⟦{u32}⟧&issuer=Acme
--
TOTP seed for the root account: ⟦{u16}⟧
--
2FA setup key (manual entry): ⟦{u4}⟧ ⟦{u4}⟧ ⟦{u4}⟧ ⟦{u4}⟧
--
oathtool --totp -b ⟦{u26}⟧
=== recovery-codes
Recovery codes, each works once:
⟦{l5}-{l5}⟧
⟦{l5}-{l5}⟧
⟦{l5}-{l5}⟧
--
Backup codes: ⟦{n8}⟧ ⟦{n8}⟧ ⟦{n8}⟧ ⟦{n8}⟧
--
BitLocker recovery key: ⟦{n6}-{n6}-{n6}-{n6}-{n6}-{n6}-{n6}-{n6}⟧
--
Wiederherstellungscode für das Konto: ⟦{u4}-{u4}-{u4}-{u4}⟧
=== header*
Authorization: Basic ⟦basic⟧
> authorization: Basic ⟦basic⟧
X-Auth-Key: ⟦{h37}⟧
-H "PRIVATE-TOKEN: ⟦{d20}⟧"
X-Vault-Token: ⟦s.{a24}⟧
proxy-authorization: Basic ⟦basic⟧
headers = {"x-api-key": "⟦{a40}⟧", "accept": "application/json"}
Ocp-Apim-Subscription-Key: ⟦{h32}⟧
=== cookie*
Cookie: lang=de; sessionid=⟦{l32}⟧; theme=dark
Set-Cookie: PHPSESSID=⟦{l26}⟧; path=/; HttpOnly
curl -b 'connect.sid=s%3A⟦{d32}⟧' http://localhost:3000/me
document.cookie = "remember_token=⟦{h40}⟧; Secure"
.example.com TRUE / TRUE 1790000000 auth_session ⟦{d48}⟧
=== encoded*
cloud-init user-data: ⟦b64env⟧
echo ⟦b64env⟧ | base64 -d > .env
config blob (base64): ⟦b64env⟧
POST body user=mira&password=⟦percent⟧&remember=1
https://intra.example/login?user=ines&pass=⟦percent⟧
postgres://app:⟦percent⟧@db1/ledger
=== split
token = (
    "glsa_⟦{a16}⟧"
    "⟦{a16}_{h8}⟧"
)
--
const key = "⟦dapi{h12}⟧" +
  "⟦{h20}⟧";
--
export API_SECRET=⟦{a20}⟧\
⟦{a20}⟧
--
String pw = "⟦{a9}⟧" + "⟦{a9}⟧"; // password of the report user
--
curl -H "Authorization: Bearer \
⟦{a44}⟧" https://api.example
--
db_password: "⟦{a14}⟧\
  ⟦{a14}⟧"
--
$secret = '⟦{h20}⟧'
  . '⟦{h20}⟧';
--
lin_api_⟦{a18}⟧
⟦{a22}⟧  <- wrapped by the terminal, one token
=== sentence-en*
The password for the staging admin is ⟦pw⟧ until Monday.
I reset the router; the new admin password is "⟦pw⟧".
Log in as olga with the password ⟦pwu⟧ and open Settings.
Passphrase of the backup disk: ⟦phrase⟧
We agreed to use ⟦pw⟧ as the password for all demo accounts.
The wifi key in the office is now ⟦pwu⟧.
My pin for the alarm panel is ⟦{n6}⟧, please feed the cat.
=== sentence-de*
Das Passwort für den Testserver lautet ⟦pw⟧, bitte nicht weitergeben.
Kennwort vom WLAN im Büro: ⟦pw⟧
Ich habe das Admin-Passwort auf ⟦pw⟧ geändert.
Zugangsdaten Kamera: Benutzer admin, Passwort ⟦pwu⟧
=== sentence-fr*
Le mot de passe du serveur de recette est ⟦pw⟧, à changer lundi.
Mot de passe : ⟦pw⟧
J'ai remis le mdp à ⟦pwu⟧ pour le compte de secours.
=== sentence-es*
La contraseña del usuario de informes es ⟦pw⟧.
Cambiaron el wifi; contraseña nueva: ⟦pwu⟧
Cambié la clave del administrador a ⟦pw⟧ ayer por la tarde.
=== sentence-it*
La password del database di prova è ⟦pw⟧ e scade a fine mese.
Parola d'ordine per il NAS: ⟦pwu⟧
=== sentence-pt*
A senha do servidor de homologação é ⟦pw⟧, não repasse.
Palavra-passe do painel: ⟦pwu⟧
=== sentence-nl*
Het wachtwoord van de testomgeving is ⟦pw⟧, graag geheim houden.
Wachtwoord beheerder: ⟦pwu⟧
=== sentence-pl*
Hasło do serwera testowego to ⟦pw⟧, zmień je w piątek.
hasło: ⟦pwu⟧
=== sentence-cs*
Heslo k databázi je ⟦pw⟧.
=== sentence-sv*
Lösenordet till testmiljön är ⟦pw⟧, ändra det på fredag.
Lösenord: ⟦pwu⟧
=== sentence-tr*
Test sunucusunun şifresi ⟦pw⟧, kimseyle paylaşma.
Parola: ⟦pwu⟧
=== sentence-ru*
Пароль от тестового сервера: ⟦pw⟧
Новый пароль администратора ⟦pwu⟧, никому не передавай.
=== sentence-uk*
Пароль до тестової бази: ⟦pwu⟧
=== sentence-ja*
検証環境のパスワードは ⟦pwu⟧ です。
パスワード：⟦pwu⟧
=== sentence-zh*
测试服务器的密码是⟦pwu⟧，请不要外传。
密码：⟦pwu⟧
=== sentence-ko*
테스트 서버 비밀번호는 ⟦pwu⟧ 입니다.
비밀번호: ⟦pwu⟧
=== sentence-vi*
Mật khẩu máy chủ thử nghiệm là ⟦pwu⟧ nhé.
=== sentence-id*
Kata sandi server uji adalah ⟦pwu⟧, jangan disebarkan.
=== sentence-el*
Ο κωδικός πρόσβασης είναι ⟦pwu⟧ μέχρι την Παρασκευή.
=== sentence-fi*
Testipalvelimen salasana on ⟦pwu⟧, vaihda se perjantaina.
=== sentence-ar*
كلمة المرور: ⟦pwu⟧
=== sentence-hi*
सर्वर का पासवर्ड ⟦pwu⟧ है
=== chat
mira: can't get into grafana
olga: password? it's ⟦pw⟧, don't share
--
[10:14] jon: what's the root pw on the nas again
[10:15] ines: ⟦pw⟧
[10:15] jon: ty
--
<kim> anyone have the vpn login
<raj> user vpn3, pass is ⟦pwu⟧
--
User: the db password is ⟦pw⟧ — use it for the migration only
Assistant: Understood, I will not write it down.
--
lena: und das Passwort?
tom: ⟦pw⟧ aber pssst
--
- Luis: ¿me pasas la contraseña del panel?
- Ana: sí, es ⟦pw⟧
--
PM from sysop: new creds are jdoe / ⟦pw⟧
=== question-answer
Q: What is the service account's password?
A: ⟦pw⟧
--
? Enter the registry token: ⟦{a32}⟧
? Registry URL: https://npm.example
--
Security question: name of your first pet?
Answer: ⟦word⟧
=== prompt
$ sudo mount.cifs //nas/b /mnt -o user=backup
Password for backup@//nas/b: ⟦pwu⟧
--
Enter passphrase for key '/home/ops/.ssh/id_rsa': ⟦phrase⟧
Identity added.
--
Username: svc-build
Password: ⟦pw⟧
Login Succeeded
--
New password: ⟦pw⟧
Generated initial admin account.
--
A temporary password is generated for root@localhost: ⟦pw⟧
--
Your API key (shown once): ⟦{a40}⟧
--
[sudo] password for olga: ⟦pwu⟧
=== test-code
driver.find_element(By.ID, "password").send_keys("⟦pw⟧")
--
driver.findElement(By.name("pass")).sendKeys("⟦pw⟧");
--
await page.fill('#password', '⟦pw⟧');
--
await page.getByLabel('Password').fill('⟦pw⟧');
--
cy.get('input[type=password]').type('⟦pw⟧{enter}')
--
fill_in "Password", with: "⟦pw⟧"
--
self.client.login(username="olga", password="⟦pw⟧")
--
I.fillField('password', secret('⟦pw⟧'));
=== code
dataSource.setPassword("⟦pw⟧");
--
factory.setUsername("bus");
factory.setPassword("⟦pwu⟧");
--
conn = psycopg2.connect(host="db1", user="etl", password="⟦pw⟧")
--
$pdo = new PDO('mysql:host=db1;dbname=shop', 'shop', '⟦pw⟧');
--
private static final String DB_PASS = "⟦pwu⟧";
--
const char* wifiPassword = "⟦pwu⟧";
--
var cred = new NetworkCredential("svc", "⟦pw⟧", "CORP");
--
if (input.password === "⟦pw⟧") return true;
--
ssh.connect("10.4.0.9", username="root", password="⟦pw⟧")
--
app.secret_key = b"⟦{d32}⟧"
--
Fernet(b"⟦{d43}=⟧").decrypt(blob)
--
hmac.new(b"⟦{h64}⟧", body, hashlib.sha256)
--
jwt.sign(payload, '⟦{a30}⟧', { expiresIn: '2h' })
--
let password: &str = "⟦pw⟧";
--
password := "⟦pw⟧"
--
mysqli_connect("localhost", "wp", "⟦pw⟧", "blog");
=== powershell
$p = ConvertTo-SecureString "⟦pw⟧" -AsPlainText -Force
--
ConvertTo-SecureString -String '⟦pw⟧' -AsPlainText -Force | Set-Secret -Name web
--
Set-ADAccountPassword mira -Reset -NewPassword (ConvertTo-SecureString -AsPlainText "⟦pwu⟧" -Force)
=== table
| host | user | password |
|------|------|----------|
| db1  | app  | ⟦pw⟧ |
--
host     login    passwort
web3     admin    ⟦pw⟧
--
name,login,password
Camera yard,viewer,⟦pwu⟧
--
| Dienst | Benutzer | Kennwort |
|---|---|---|
| Drucker | admin | `⟦pw⟧` |
--
user	pwd
ines	⟦pwu⟧
--
<tr><th>Password</th></tr><tr><td>⟦pwu⟧</td></tr>
=== after-user*
ssh admin@10.4.0.20 / ⟦pw⟧
Login: mira / ⟦pw⟧
creds: root:⟦pwu⟧
nas admin account -> admin, ⟦pwu⟧
portal (user ines, pw ⟦pw⟧)
mira@corp.example:⟦pwu⟧
=== email
Subject: Your new account

Hello Mira,
your login is mira and your temporary password is ⟦pw⟧
Please change it after the first login.
--
Bonjour,
identifiant : ines
mot de passe provisoire : ⟦pw⟧
Cordialement
=== ci-log
2026-02-11T08:00:12Z ##[debug]Evaluating secrets.DEPLOY_KEY
2026-02-11T08:00:12Z + deploy --api-key ⟦{a36}⟧ --env prod
--
[Pipeline] sh
+ curl -s -u ci:⟦pwu⟧ -T out.jar http://nexus.inner/repo/out.jar
--
npm error config //npm.example/:_authToken=⟦{g}⟧
--
-//npm.orbit-works.dev/:_password=⟦b64pw⟧
'''

PERSONAL = r"""
=== email*
Skicka underlaget till ⟦mail⟧ senast fredag.
Ask ⟦mail⟧ before you merge, she owns the importer.
The customer wrote from ⟦mail⟧ and wants a refund.
Bitte bei ⟦mail⟧ melden, er hat den Schlüssel zum Serverraum.
Merci d'envoyer la facture à ⟦mail⟧ avant jeudi.
El paciente dejó su correo, ⟦mail⟧, en recepción.
Scrivimi a ⟦mail⟧ oppure passa in ufficio.
Por favor confirme com ⟦mail⟧ até amanhã.
Stuur het rapport naar ⟦mail⟧ en bel daarna even.
Napisz do ⟦mail⟧, ona to zatwierdza.
連絡先は ⟦mail⟧ です。
Пишите на ⟦mail⟧, он ответит вечером.
assigned reviewer: Tomas (⟦mail⟧), on leave from the 3rd
WHERE email = '⟦mail⟧' gave two rows
{"customer": {"name": "R. Lindqvist", "email": "⟦mail⟧"}}
From: Ines Duarte <⟦mail⟧>
| 41 | Duarte | ⟦mail⟧ | active |
=== phone-de*
Telefon: ⟦0151 {n8}⟧, am besten nach 17 Uhr
Ruf Mira unter ⟦+49 171 {n7}⟧ an.
=== phone-fr*
Appelez Claire au ⟦06 12 {n2} {n2} {n2}⟧ si ça bloque.
Tél. : ⟦+33 6 71 {n2} {n2} {n2}⟧
=== phone-gb*
His mobile is ⟦07812 {n6}⟧, ring twice.
call Priya on ⟦+44 7454 {n6}⟧ when the courier comes
=== phone-us*
Dana's cell: ⟦(312) 44{n1}-{n4}⟧
phone,⟦+1 617 25{n1} {n4}⟧,home
=== phone-es*
Llame a Lucía al ⟦612 {n2} {n2} {n2}⟧ por la mañana.
móvil: ⟦+34 655 {n3} {n3}⟧
=== phone-it*
Il cellulare di Paolo è ⟦347 {n7}⟧.
Tel. ⟦+39 333 {n3} {n4}⟧
=== phone-pl*
Telefon do Agnieszki: ⟦601 {n3} {n3}⟧
kom. ⟦+48 512 {n3} {n3}⟧
=== phone-br*
Celular da Renata: ⟦(11) 98{n3}-{n4}⟧
WhatsApp ⟦+55 21 99{n3}-{n4}⟧
=== phone-in*
Ravi's number is ⟦+91 98{n3} {n5}⟧
मोबाइल नंबर: ⟦97{n8}⟧
=== phone-jp*
携帯電話：⟦090-4{n3}-{n4}⟧
田中さんの電話番号は⟦080-3{n3}-{n4}⟧です。
=== phone-kr*
전화번호: ⟦010-4{n3}-{n4}⟧
김 대리 휴대폰 ⟦010-8{n3}-{n4}⟧
=== phone-cn*
手机号：⟦138{n8}⟧
请联系王工，电话 ⟦159 {n4} {n4}⟧
=== phone-ru*
Телефон Ольги: ⟦+7 916 {n3}-{n2}-{n2}⟧
моб. ⟦8 (903) {n3}-{n2}-{n2}⟧
=== phone-tr*
Cep telefonu: ⟦0532 {n3} {n2} {n2}⟧
Ayşe Hanım'ın numarası ⟦+90 542 {n3} {n2} {n2}⟧
=== phone-se*
Mobilnummer: ⟦070-{n3} {n2} {n2}⟧
Ring Karin på ⟦+46 73 {n3} {n2} {n2}⟧
=== card*
kart numarası: ⟦mastercard⟧
The customer paid with ⟦visa⟧ and was charged twice.
Kreditkarte: ⟦mastercard⟧, gültig bis 08/29
numéro de carte ⟦visa⟧
tarjeta ⟦amex⟧ rechazada por el banco
{"pan": "⟦visa-plain⟧", "exp": "11/28"}
cartão de crédito: ⟦mastercard⟧
card on file ⟦amex⟧ (billing street 4)
номер карты ⟦visa⟧
=== iban*
Bankverbindung der Kundin: ⟦iban-DE⟧
Bitte auf das Konto mit der IBAN ⟦iban-DE⟧ überweisen.
Refund to ⟦iban-GB⟧ (account of Priya).
rekeningnummer: ⟦iban-NL⟧
IBAN ⟦iban-AT⟧, lautend auf Mira
Kontoverbindung: ⟦iban-CH⟧
Salary account is ⟦iban-IE⟧ since March.
Mano sąskaita: ⟦iban-LT⟧
Cont bancar: ⟦iban-RO⟧
"iban": "⟦iban-SA⟧"
virement sur le compte ⟦iban-LU⟧
=== us-ssn*
Social Security no. ⟦ssn⟧ is on the W-2
SSN: ⟦ssn⟧
The applicant's social security number is ⟦ssn⟧.
"ssn": "⟦ssn⟧", "dob": "1984-02-11"
| Dana | ⟦ssn⟧ | SSN verified |
=== ecuador-cedula*
Cédula de identidad: ⟦cedula⟧
El cliente con cédula ⟦cedula⟧ pidió la baja.
=== india-pan*
PAN number of the vendor: ⟦pan⟧
पैन कार्ड: ⟦pan⟧
=== india-aadhaar*
आधार संख्या: ⟦aadhaar⟧
Aadhaar no. ⟦aadhaar⟧ was uploaded with the form.
=== thailand-id*
บัตรประชาชนเลขที่ ⟦thai⟧
เลขประจำตัวประชาชน ⟦thai⟧
=== colombia-nit*
El NIT ⟦nit⟧ no aparece en el registro.
NIT del contratista: ⟦nit⟧
=== newzealand-ird*
IRD: ⟦ird⟧
Her IRD number is ⟦ird⟧
=== brazil-cpf*
CPF do titular: ⟦cpf⟧
O CPF ⟦cpf⟧ aparece duas vezes na planilha.
=== spain-dni*
DNI: ⟦dni⟧
La solicitante, con NIE ⟦nie⟧, no ha firmado.
=== italy-codice-fiscale*
Codice fiscale: ⟦codice⟧
Il codice fiscale del paziente è ⟦codice⟧.
=== poland-pesel*
PESEL: ⟦pesel⟧
Numer PESEL pacjentki to ⟦pesel⟧.
=== turkey-tckn*
Başvuranın TC kimlik numarası ⟦tckn⟧.
T.C. Kimlik No: ⟦tckn⟧
=== sweden-personnummer*
Hennes personnummer är ⟦personnummer⟧.
Personnummer: ⟦personnummer⟧
=== korea-rrn*
고객 주민번호 ⟦rrn⟧
주민등록번호: ⟦rrn⟧
=== chile-rut*
La trabajadora, RUT ⟦rut⟧, pidió licencia.
RUT del cliente: ⟦rut⟧
=== france-nir*
NIR ⟦nir⟧ (carte Vitale)
Numéro de sécurité sociale : ⟦nir⟧
=== netherlands-bsn*
BSN ⟦bsn⟧ staat nog in de testdump.
Burgerservicenummer: ⟦bsn⟧
=== canada-sin*
Social insurance number: ⟦sin⟧
NAS : ⟦sin⟧
=== australia-tfn*
TFN: ⟦tfn⟧
Tax file number ⟦tfn⟧ is on the form.
=== uk-nino*
National Insurance number: ⟦nino⟧
NI no. ⟦nino⟧
=== china-resident-id*
身份证号：⟦resident⟧
客户身份证号码为⟦resident⟧。
=== finland-hetu*
Asiakkaan henkilötunnus on ⟦hetu⟧.
Henkilötunnus: ⟦hetu⟧
=== southafrica-id*
ID number (RSA): ⟦southafrica⟧
South African ID number: ⟦southafrica⟧
=== portugal-nif*
O cliente deu o NIF ⟦nif⟧.
NIF do contribuinte: ⟦nif⟧
=== japan-my-number*
個人番号は ⟦mynumber⟧
マイナンバー：⟦mynumber⟧
"""

HARMLESS = r"""
=== git*
Reverted in {h40}, see the follow-up.
fixes the regression from {h8}
commit {h40} (HEAD -> main, origin/main)
index {h7}..{h7} 100644
git bisect bad {h40}
uses: actions/checkout@{h40} # v4.2.1
rev: {h40}
Merge-base is {h12}, so the rebase is clean.
From {h40} Mon Sep 17 00:00:00 2001
$ git cherry-pick {h10} && git push origin release/2.8
=== digest*
sha256:{h64}
{h64}  dist/tool-2.4.1-linux-amd64.tar.gz
FROM debian:12-slim@sha256:{h64}
image: registry.example/app@sha256:{h64}
md5 of the dump is {h32}, same on both sides
SHA1 ({h40}) matches the release page
ETag: "{h32}"
"integrity": "sha512-{b86}==",
<script src="a.js" integrity="sha384-{b64}" crossorigin="anonymous"></script>
--hash=sha256:{h64}
checksum = "{h64}"
h1:{b43}=
"contentHash": "{b86}=="
narHash = "sha256-{b43}=";
cache key: node-modules-Linux-{h64}
blake3 {h64}
layer {h12}: Pull complete
content-md5: {b22}==
=== id*
request_id={g} took 812 ms
trace_id: {h32} span_id: {h16}
traceparent: 00-{h32}-{h16}-01
session {g} resumed
⟦ulid⟧ is the ULID of the run
The run ⟦ulid⟧ was cancelled.
container {h64} exited with 137
subnet-0{h16} in vpc-0{h16}
i-0{h16} was replaced by the autoscaling group
job id {n10}, pipeline {n9}
"_id": "{h24}"
objectId {h24} not found
nanoid {d21} for the row
X-Amz-Cf-Id: {d55}==
subscription {g} (tenant {g})
arn:aws:acm:eu-west-1:{n12}:certificate/{g}
arn:aws:kms:eu-west-1:{n12}:key/{g}
sentry event {h32}
GUID {{g}} in the solution file
https://docs.google.com/document/d/{d44}/edit
https://www.youtube.com/watch?v={d11}
https://www.figma.com/file/{a22}/Design?node-id=12-44
slack thread https://acme.slack.com/archives/C0{u9}/p17{n14}
notion page https://www.notion.so/Plan-{h32}
gist https://gist.github.com/olga/{h32}
=== public-key*
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} ops@build3
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{b300} mira
ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBB{b86}=
recipient age1⟦bech58⟧
untrusted comment: minisign public key {h16}
RW{b54}
cache.nixos.org-1:{b43}=
trusted-public-keys = inner-cache:{b43}=
SHA256:{b43} olga@laptop (ED25519)
Key fingerprint = {h4} {h4} {h4} {h4} {h4}  {h4} {h4} {h4} {h4} {h4}
gpg --recv-keys 0x{h40}
PublicKey = {b43}=
|1|{b27}=|{b27}= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}
"kty":"OKP","crv":"Ed25519","x":"{d43}"
pin-sha256="{b43}="
SHA1 Fingerprint={h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}
v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQ{b120}
VAPID_PUBLIC_KEY=B{d86}
=== public-block
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{b32}
{b64}
{b40}QAB
-----END PUBLIC KEY-----
--
-----BEGIN CERTIFICATE-----
MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkq{b32}
{b64}
{b64}
-----END CERTIFICATE-----
--
-----BEGIN PGP PUBLIC KEY BLOCK-----

mQINBG{b58}
{b64}
=Ab1c
-----END PGP PUBLIC KEY BLOCK-----
--
-----BEGIN PGP SIGNATURE-----

iQIzBAABCAAdFiEE{b48}
{b64}
=q9Zx
-----END PGP SIGNATURE-----
--
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg{b26}
{b40}
-----END SSH SIGNATURE-----
--
caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{b200}
=== chain*
USDC contract 0x{h40}
tx 0x{h64} confirmed in block {n8}
bc1q⟦bech38⟧ received 0.2
transfer to 0x{h40} reverted
ipfs://Qm{a44}
event topic 0x{h64}
const ROUTER = "0x{h40}";
cosmos1⟦bech38⟧
=== asset*
<path d="M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10S17.52 2 12 2zm0 18c-4.4{n1} 0-8-3.6"/>
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAB{b160}
src: url(data:font/woff2;base64,d09GMgABAAAAA{b160})
!function(e,t){"use strict";var n=t.r,o=e.pwd;function i(e){return n[e]||(n[e]={})}}(self,window);
"mappings": "AAAA,SAASA,GAAG,CAACC,EAAE,CAAC;AACD,MAAM,GAAG,CAAC"
![shot](https://cdn.example/uploads/{h32}.png)
"blurDataURL": "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQ{b80}"
static/js/main.{h8}.chunk.js
.css-{l6}-MuiButtonBase-root-MuiIconButton-root
=== name*
at com.example.shop.security.PasswordResetTokenRepositoryImpl.findByToken(Impl.java:88)
class AbstractCredentialsProviderFactoryBeanPostProcessorTest(TestCase): ...
see `label-pr.yml:20` and `release.yml:113`
src/auth/token_store.py:214: error: Missing return statement
internal/secrets/manager_test.go:97: expected 3, got 2
test_password_is_hashed_before_it_is_stored PASSED
it('rejects an expired token with 401', ...)
def test_secret_key_is_rotated_every_90_days():
KeyboardInterruptHandlerRegistrationToken
NSPersistentCloudKitContainerOptions2024
packages/ui/src/components/PasswordStrengthMeter/PasswordStrengthMeter.stories.tsx
/var/lib/kubelet/pods/{g}/volumes/kubernetes.io~projected/kube-api-access-{l5}
pod shop-api-{h9}-{l5} restarted twice
branch feature/ACME-{n4}-rotate-database-password
com.apple.security.temporary-exception.mach-lookup.global-name
org.springframework.security.crypto.password.DelegatingPasswordEncoder
SECRET_KEY_BASE_PATH and TOKEN_FILE_MODE are read by the loader
X509v3 Subject Key Identifier
E0432: unresolved import `crate::auth::SecretString`
C:\Users\olga\AppData\Local\Temp\tmp{l8}\PasswordFilter.dll
=== link*
[ADR 12](0012-authenticate-at-the-edge.md)
[rotation](../decisions/0031-rotate-api-keys-without-downtime.md)
see [the token note](2026-02-11-why-the-refresh-token-lives-in-redis.md)
https://wiki.example/display/OPS/How+to+reset+a+password
https://example.com/blog/2024/10/what-is-a-secret-manager-and-why-use-one
docs/adr/0007-use-passkeys-instead-of-passwords.md
#how-do-i-create-an-api-key-for-the-sandbox
[[password-policy]] and [[token-lifetimes]]
https://datatracker.ietf.org/doc/html/rfc6749#section-4.1
=== placeholder*
DB_PASSWORD=${DB_PASSWORD}
password: <your-password>
api_key: "{{ vault_api_key }}"
TOKEN=xxxxxxxxxxxxxxxxxxxx
ADMIN_PASSWORD=changeme
secret = "REPLACE_ME"
Authorization: Bearer <token>
curl -H "X-Api-Key: $API_KEY" https://api.example
AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
postgres://user:password@localhost:5432/db
postgresql://${PGUSER}:${PGPASSWORD}@${PGHOST}/app
mysql://<user>:<password>@<host>/<db>
password: ********
client_secret: [REDACTED]
apiKey: process.env.SEARCH_KEY,
password = os.environ["DB_PASSWORD"]
passwd: !vault_ref ops/db#password
token: {{ .Values.auth.token | quote }}
password: "op://Infra/db1/password"
secretKeyRef: {name: db, key: password}
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
API_KEY=your_api_key_here
pass: dummy
PASSWORD=%DB_PASS%
token = var.registry_token
password = data.aws_ssm_parameter.db.value
"key": "INSERT-KEY-HERE"
contraseña: <tu contraseña>
Passwort: <bitte eintragen>
mot de passe : (voir le coffre)
SECRET=...
--from-literal=password="$(pass show db1)"
mysql -u root -p"$MYSQL_ROOT_PASSWORD" shop
export TOKEN=$(gh auth token)
sshpass -e ssh ops@10.4.0.9
redis-cli -a "$REDIS_PASS" ping
Password for olga:
Enter password:
password: null
secret: ""
api_token: TODO
AWS_ACCESS_KEY_ID=ASIAIOSFODNN7EXAMPLE (sample from the manual)
SLACK_TOKEN=xoxb-not-a-real-token
GH_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
otpauth://totp/Example:alice?secret=JBSWY3DPEHPK3PXP&issuer=Example (from the docs)
=== policy*
Passwords must have 12 characters and one digit.
password_encryption: scram-sha-256
Passwörter müssen mindestens zwölf Zeichen lang sein.
Le mot de passe doit contenir au moins 12 caractères.
La contraseña debe tener 12 caracteres como mínimo.
La password deve contenere una maiuscola.
A senha expira em 90 dias.
Het wachtwoord moet elke 90 dagen worden gewijzigd.
Hasło musi mieć co najmniej 12 znaków.
Lösenordet måste vara minst tolv tecken.
Şifre en az on iki karakter olmalıdır.
Пароль должен содержать не менее 12 символов.
パスワードは12文字以上にしてください。
密码至少需要12个字符。
비밀번호는 12자 이상이어야 합니다.
Mật khẩu phải có ít nhất 12 ký tự.
The password is stored as a bcrypt hash and never logged.
The token is valid for 15 minutes, the refresh token for 30 days.
Secret rotation is done by the operator every quarter.
I forgot my password again, please reset it.
The password was wrong, then the account locked.
PasswordAuthentication no
password requisite pam_pwquality.so retry=3 minlen=12
default_authentication_plugin=caching_sha2_password
max_token_length: 4096
password_reset_timeout_days = 3
The secret is to warm the cache first.
Key takeaway: measure before you tune.
token budget: 32000, used 18211
tokens: 1532 in, 487 out
The pass rate is 97.4 percent, key metric unchanged.
Wir haben das Passwort gestern zurückgesetzt und alle Sitzungen beendet.
On a changé le mot de passe hier, rien à faire.
La clave primaria es compuesta; no hay clave foránea.
Public key pinning was dropped in favour of CT.
password: required, string, min 12
token (string): the token that the login gave back
auth_method: password
=== public-id*
GOOGLE_CLIENT_ID={n12}-{l32}.apps.googleusercontent.com
gtag('config', 'G-{u10}')
GTM-{u7}
UA-{n8}-1
client_id: {g}
oauth client id {a20} (public, PKCE)
ca-pub-{n16}
DSN https://{h32}@o{n6}.ingest.example/{n7}
hosted zone Z{u20}
app bundle 5{u9}.com.example.shop
google-site-verification={d43}
doc version {d22}
AZURE_TENANT_ID={g}
measurementId: "G-{u10}"
=== yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop
  uid: {g}
  resourceVersion: "{n9}"
  annotations:
    checksum/config: {h64}
--
metadata:
  labels:
    app.kubernetes.io/instance: shop
    pod-template-hash: {h10}
  ownerReferences:
    - uid: {g}
--
apiVersion: v1
kind: ServiceAccount
automountServiceAccountToken: false
secrets:
  - name: shop-token-{l5}
--
env:
  - name: DB_PASSWORD
    valueFrom:
      secretKeyRef:
        name: db
        key: password
--
imagePullSecrets:
  - name: registry-credentials
volumes:
  - name: tls
    secret: {secretName: shop-tls}
--
permissions:
  id-token: write
  contents: read
--
minimum_password_length: 14
password_history: 5
lockout_after: 10
=== lock
"node_modules/left-pad": {
  "version": "1.3.0",
  "resolved": "https://npm.orbit-works.dev/left-pad/-/left-pad-1.3.0.tgz",
  "integrity": "sha512-{b86}=="
}
--
[[package]]
name = "secrecy"
version = "0.8.0"
checksum = "{h64}"
--
golang.org/x/crypto v0.31.0 h1:{b43}=
golang.org/x/crypto v0.31.0/go.mod h1:{b43}=
--
"flake-compat": {"locked": {"lastModified": {n10}, "narHash": "sha256-{b43}=", "rev": "{h40}"}}
--
terraform-provider: "h1:{b43}=", "zh:{h64}"
=== table
| Token | Meaning |
|-------|---------|
| ident | a name |
| number | digits only |
--
| Key | Action |
|-----|--------|
| Ctrl+K | opens the palette |
| Escape | closes it |
--
| Field | Password | Token |
|---|---|---|
| required | always | optional |
--
| Secret | Owner | Rotated |
|---|---|---|
| db-main | platform | quarterly |
| smtp-relay | support | 2026-01-12 |
--
method    password   passkey
default   enabled    disabled
--
column         type     key
password_hash  varchar  no
id             bigint   primary
--
| Benutzer | Passwort geändert |
|---|---|
| olga | gestern |
=== code
token = request.headers.get("Authorization", "").removeprefix("Bearer ")
--
password = getpass.getpass("Password: ")
--
const password = await prompt({ type: "password", message: "Password" });
--
if (!process.env.API_SECRET) throw new Error("API_SECRET is missing");
--
SECRET_RE = re.compile(r"(?i)(password|token)\s*[:=]\s*\S+")
--
regex: 'ghp_[A-Za-z0-9]{36}'
--
key = lambda row: (row.token, row.position)
--
self.password = password
--
String token = tokenService.createToken(user.getId());
--
password=self.settings.db_password, host=self.settings.db_host
--
def check(password: str, hashed: bytes) -> bool:
    return bcrypt.checkpw(password.encode(), hashed)
--
user.setPassword(encoder.encode(form.getPassword()));
--
ALTER TABLE users ADD COLUMN password_hash varchar(255) NOT NULL;
--
SELECT id, password_digest, reset_token FROM users WHERE id = $1;
--
driver.find_element(By.ID, "password").send_keys(settings.password)
--
await page.fill('#password', process.env.E2E_PASSWORD);
--
$cred = Get-Credential -UserName CORP\adm -Message "Password"
--
ALTER ROLE ledger WITH PASSWORD :'new_password';
--
private final PasswordEncoder passwordEncoder = new BCryptPasswordEncoder(12);
--
type Props = { apiKey: string; secret?: string; token: string | null };
--
errors.password = t("errors.password.too_short");
--
csrf_token = Depends(get_csrf_token)
--
<input type="password" name="password" autocomplete="current-password">
--
Password string `json:"password" validate:"required,min=12"`
--
@Value("${shop.api.secret}") private String secret;
--
for token, count in Counter(tokens).most_common(10):
--
key={item.id} secret={undefined}
--
"password": {"type": "string", "format": "password", "minLength": 12}
=== mail-like*
ssh ops@build3.inner uptime
scp dump.sql backup@nas.inner:/volume1/dumps/
git clone git@git.example:ops/charts.git
npm install left-pad@1.3.0 @types/node@22.1.0
@pytest.fixture(scope="session")
security@example.com takes reports
From: noreply@example.com
Contact support@example.com for a new licence.
postmaster@example.org, abuse@example.org
docker pull registry.example/app@sha256:{h64}
uses pkg@2.4.1 from the inner registry
olga@laptop:~/src/shop$ make test
root@db1:/# ls
author: The Example Authors
admin@localhost
user@example.com
react-dom@19.0.0 requires react@^19.0.0
rsync -a deploy@web3:/srv/www/ ./www/
test@test.com is the fixture user
info@example.net and sales@example.net bounce
actions/setup-node@v4, actions/cache@v4
systemctl status getty@tty1.service
wg-quick@wg0.service loaded
@media (min-width: 40em) and (hover)
@RequestMapping(value = "/login", method = POST)
uid=svc@CORP.LOCAL in the keytab
=== mail-like-block
@AGENTS.md
@docs/style.md
--
# Copyright 2024 The Example Authors. All rights reserved.
# SPDX-License-Identifier: Apache-2.0
--
author: Platform Team
license: MIT
maintainers: [ops]
--
@dataclass(frozen=True)
class Token:
    kind: str
=== version-date*
python 3.12.4, node v22.11.0, postgres 16.4
2026-02-11T08:00:12.{n6}Z
released on 11.02.2026 at 08:15
v2.8.0-rc.1+build.{n8}
chrome 131.0.6778.{n3}
20260211-081500-nightly
0.0.0-20240911{n6}-{h12}
since 1998-11-04 the form has not changed
kernel 6.8.0-51-generic #52-Ubuntu SMP
=== number*
closes #{n5}, related to #{n4}
started at 17{n8}, ended at 17{n8}
epoch ms 17{n11}
listening on 0.0.0.0:8443 and [::1]:9090
10.42.{n1}.{n2} -> 172.16.{n1}.{n2} port 5432
order id {n10} was shipped
invoice 2026-{n6} is paid
ISBN 978-0-13-235088-4
ISSN 0317-8471
case 4{n9} in the tracker
rows: 415 555 1234 in the three shards
latency 120-340-1200 ms (p50-p95-p99)
RFC 7519, section 4.1.4
account balance 4 111 250,75
lat 48.20849, lon 16.37208
pid 48211, rss 1532844 kB
2,147,483,647 is the limit
telephone queue depth 120, phone calls dropped 3
part no. 0{n3}-{n3}-{n2}
offset 0x{h8} size 0x{h4}
EAN 40063813339{n1}
DOI 10.1145/{n7}.{n7}
ticks 638{n15}
=== card-like*
batch ⟦bad-card⟧ is not complete
sensor serial ⟦bad-card⟧
tracking number ⟦bad-card⟧
the trace shows ⟦bad-card⟧ as the sequence
=== log*
INFO auth: password changed for user olga from 10.4.0.{n2}
WARN token expired 12 s ago, refreshing
sshd[{n5}]: Accepted publickey for ops from 10.4.0.9 port {n5} ssh2: ED25519 SHA256:{b43}
sshd[{n5}]: Failed password for invalid user admin from 203.0.113.{n2} port {n5}
masked: ***, password: *** , token: ***
##[debug]Evaluating secrets.DEPLOY_KEY -> '***'
Secret "db" created
secret/shop-tls configured
Successfully rotated token for service account shop-ci
ERROR 1045 (28000): Access denied for user 'app'@'10.4.0.9' (using password: YES)
psql: error: FATAL: password authentication failed for user "ledger"
key "user:{n6}:profile" evicted
GET /login?error=bad_password 302 12ms
=== other-language*
Der Schlüssel liegt beim Empfang, das Passwort kennt nur Mira.
La clé est chez le gardien et le mot de passe dans le coffre.
La contraseña está en el gestor, no la escribas aquí.
Hasło jest w sejfie, nie wpisuj go tutaj.
Пароль лежит в хранилище, здесь его нет.
パスワードは金庫にあります。
密码在保险库里，不要写在这里。
비밀번호는 금고에 있습니다.
Parola kasada, buraya yazma.
Het wachtwoord staat in de kluis.
A senha está no cofre, nunca no repositório.
Lösenordet finns i valvet.
"""


def luhn(digits: str) -> str:
    """Return digits with the check digit of payment cards behind them."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (2 - place % 2)
        total += value // 10 + value % 10
    return digits + str(-total % 10)


def weigh(digits: str, weights: tuple[int, ...]) -> int:
    """Return the sum of the digits, each times its weight."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def draw_digits(draw: random.Random, count: int, first: str = string.digits) -> str:
    """Draw digits, the first from some."""
    return draw.choice(first) + "".join(draw.choices(string.digits, k=count - 1))


def draw_birthday(draw: random.Random) -> datetime.date:
    """Draw a day in the years 1950 to 1998."""
    return datetime.date(1950, 1, 1) + datetime.timedelta(days=draw.randrange(17_800))


def draw_cedula(draw: random.Random) -> str:
    """Draw a cedula of Ecuador."""
    return luhn(f"{draw.randrange(1, 25):02}" + draw_digits(draw, 7, "012345"))


def draw_pan(draw: random.Random) -> str:
    """Draw a permanent account number of an Indian person."""
    letters = "".join(draw.choices(string.ascii_uppercase, k=5))
    return letters[:3] + "P" + letters[3] + f"{draw.randrange(1, 10_000):04}" + letters[4]


def draw_aadhaar(draw: random.Random) -> str:
    """Draw an Aadhaar number, whose check digit is Verhoeff's."""
    digits = draw_digits(draw, 11, "23456789")
    check = 0
    for place, char in enumerate(reversed(digits), 1):
        value = int(char)
        for _ in range(place % 8):
            value = int("1576283094"[value])
        check = multiply_dihedral(check, value)
    digits += str(next(n for n in range(10) if multiply_dihedral(check, n) == 0))
    return draw.choice((digits, f"{digits[:4]} {digits[4:8]} {digits[8:]}"))


def multiply_dihedral(first: int, second: int) -> int:
    """Multiply in the group of the symmetries of a pentagon."""
    if first < 5:
        return (first + second) % 5 if second < 5 else (first + second - 5) % 5 + 5
    return (first - 5 - second) % 5 + 5 if second < 5 else (first - second) % 5


def draw_thai(draw: random.Random) -> str:
    """Draw an identity number of Thailand."""
    digits = draw_digits(draw, 12, "12345678")
    digits += str((11 - weigh(digits, tuple(range(13, 1, -1))) % 11) % 10)
    if draw.random() < 0.5:
        return digits
    return f"{digits[0]}-{digits[1:5]}-{digits[5:10]}-{digits[10:12]}-{digits[12]}"


def draw_nit(draw: random.Random) -> str:
    """Draw a tax number of Colombia."""
    digits = draw_digits(draw, 9, "89")
    remainder = weigh(digits, (41, 37, 29, 23, 19, 17, 13, 7, 3)) % 11
    check = remainder if remainder < 2 else 11 - remainder
    return f"{digits[:3]}.{digits[3:6]}.{digits[6:]}-{check}"


def draw_ird(draw: random.Random) -> str:
    """Draw a tax number of New Zealand."""
    while True:
        digits = f"{draw.randrange(1_500_000, 14_000_000):08}"
        check = -weigh(digits, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
        if check < 10:
            digits = digits.removeprefix("0") + str(check)
            return f"{digits[:-6]}-{digits[-6:-3]}-{digits[-3:]}"


def draw_cpf(draw: random.Random) -> str:
    """Draw a person's tax number of Brazil."""
    digits = draw_digits(draw, 9)
    for start in (10, 11):
        check = weigh(digits, tuple(range(start, 1, -1))) * 10 % 11 % 10
        digits += str(check)
    plain = f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"
    return draw.choice((digits, plain))


def draw_dni(draw: random.Random) -> str:
    """Draw an identity number of Spain."""
    number = draw.randrange(10_000_000, 80_000_000)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def draw_nie(draw: random.Random) -> str:
    """Draw a foreigner's identity number of Spain."""
    first, remainder = draw.randrange(3), draw_digits(draw, 7)
    return f"{'XYZ'[first]}{remainder}{'TRWAGMYFPDXBNJZSQVHLCKE'[int(f'{first}{remainder}') % 23]}"


def draw_codice(draw: random.Random) -> str:
    """Draw a fiscal code of Italy."""
    day = draw_birthday(draw)
    text = "".join(draw.choices("BCDFGLMNPRSTVZ", k=6)) + f"{day:%y}"
    text += "ABCDEHLMPRST"[day.month - 1] + f"{day.day + draw.choice((0, 40)):02}"
    text += draw.choice(("H501", "F205", "L219", "A944", "D612"))
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25)
    odd += (24, 23)
    total = 0
    for place, char in enumerate(text):
        value = int(char) if char.isdigit() else ord(char) - ord("A")
        total += value if place % 2 else odd[value]
    return text + chr(ord("A") + total % 26)


def draw_pesel(draw: random.Random) -> str:
    """Draw a PESEL number of Poland."""
    digits = f"{draw_birthday(draw):%y%m%d}" + draw_digits(draw, 4)
    return digits + str(-weigh(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def draw_tckn(draw: random.Random) -> str:
    """Draw an identity number of Turkey."""
    digits = draw_digits(draw, 9, "123456789")
    odd, even = sum(map(int, digits[::2])), sum(map(int, digits[1::2]))
    digits += str((odd * 7 - even) % 10)
    return digits + str(sum(map(int, digits)) % 10)


def draw_personnummer(draw: random.Random) -> str:
    """Draw a personal number of Sweden."""
    day = draw_birthday(draw)
    digits = luhn(f"{day:%y%m%d}" + draw_digits(draw, 3))
    return draw.choice(("19", "")) + digits[:6] + "-" + digits[6:]


def draw_rrn(draw: random.Random) -> str:
    """Draw a resident number of South Korea."""
    digits = f"{draw_birthday(draw):%y%m%d}" + draw.choice("12")
    digits += f"{draw.randrange(96):02}" + draw_digits(draw, 3)
    check = (11 - weigh(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return f"{digits[:6]}-{digits[6:]}{check}"


def draw_rut(draw: random.Random) -> str:
    """Draw a tax number of Chile."""
    digits = str(draw.randrange(6_000_000, 24_000_000)).zfill(8)
    check = "0123456789K"[-weigh(digits, (3, 2, 7, 6, 5, 4, 3, 2)) % 11]
    return f"{int(digits):,}".replace(",", ".") + f"-{check}"


def draw_nir(draw: random.Random) -> str:
    """Draw a social security number of France."""
    day = draw_birthday(draw)
    parts = [draw.choice("12"), f"{day:%y}", f"{day:%m}", draw.choice(("75", "69", "33", "59"))]
    parts += [f"{draw.randrange(1, 400):03}", f"{draw.randrange(1, 900):03}"]
    parts.append(f"{97 - int(''.join(parts)) % 97:02}")
    return draw.choice((" ", "")).join(parts)


def draw_bsn(draw: random.Random) -> str:
    """Draw a citizen number of the Netherlands."""
    while True:
        digits = draw_digits(draw, 8, "123456789")
        check = weigh(digits, tuple(range(9, 1, -1))) % 11
        if check < 10:
            return digits + str(check)


def draw_sin(draw: random.Random) -> str:
    """Draw a social insurance number of Canada."""
    digits = luhn(draw_digits(draw, 8, "1234567"))
    return f"{digits[:3]} {digits[3:6]} {digits[6:]}"


def draw_tfn(draw: random.Random) -> str:
    """Draw a tax file number of Australia."""
    while True:
        digits = draw_digits(draw, 8, "12345678")
        check = weigh(digits, (1, 4, 3, 7, 5, 8, 6, 9)) % 11
        if check < 10:
            return f"{digits[:3]} {digits[3:6]} {digits[6:]}{check}"


def draw_nino(draw: random.Random) -> str:
    """Draw a national insurance number of the United Kingdom."""
    prefix, number = draw.choice(("AB", "CE", "JK", "PR", "SX", "WM")), draw_value("{n6}", draw)
    spaced = f"{prefix} {number[:2]} {number[2:4]} {number[4:]} "
    return draw.choice((spaced, prefix + number)) + draw.choice("ABCD")


def draw_resident(draw: random.Random) -> str:
    """Draw a resident identity number of China."""
    area = draw.choice(("110101", "310104", "310101", "110102", "120101"))
    digits = f"{area}{draw_birthday(draw):%Y%m%d}" + draw_digits(draw, 3)
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return digits + "10X98765432"[weigh(digits, weights) % 11]


def draw_hetu(draw: random.Random) -> str:
    """Draw a personal identity code of Finland."""
    day, number = f"{draw_birthday(draw):%d%m%y}", f"{draw.randrange(2, 900):03}"
    return f"{day}-{number}" + "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(day + number) % 31]


def draw_southafrica(draw: random.Random) -> str:
    """Draw an identity number of South Africa."""
    return luhn(f"{draw_birthday(draw):%y%m%d}" + draw_digits(draw, 4) + "08")


def draw_nif(draw: random.Random) -> str:
    """Draw a tax number of Portugal."""
    digits = draw_digits(draw, 8, "12")
    check = -weigh(digits, tuple(range(9, 1, -1))) % 11
    return digits + str(check % 10)


def draw_mynumber(draw: random.Random) -> str:
    """Draw an individual number of Japan."""
    digits = draw_digits(draw, 11, "123456789")
    remainder = weigh(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    digits += str(0 if remainder <= 1 else 11 - remainder)
    return f"{digits[:4]} {digits[4:8]} {digits[8:]}"


def draw_ssn(draw: random.Random) -> str:
    """Draw a social security number of the United States."""
    area = draw.choice((draw.randrange(101, 660), draw.randrange(670, 770)))
    return f"{area}-{draw.randrange(10, 99)}-{draw.randrange(1000, 9999)}"


def draw_iban(country: str, draw: random.Random) -> str:
    """Draw an account number with its two check digits."""
    forms = {
        "DE": "{n18}",
        "GB": "NWBK{n14}",
        "NL": "INGB{n10}",
        "AT": "{n16}",
        "CH": "00762{n12}",
        "IE": "AIBK{n14}",
        "LT": "{n16}",
        "RO": "BTRL{n16}",
        "SA": "80{n18}",
        "LU": "{n16}",
    }
    account = draw_value(forms[country], draw)
    turned = "".join(str(int(char, 36)) for char in f"{account}{country}00")
    iban = f"{country}{98 - int(turned) % 97:02}{account}"
    if draw.random() < 0.4:
        return iban
    return " ".join(iban[place : place + 4] for place in range(0, len(iban), 4))


def draw_card(form: str, draw: random.Random) -> str:
    """Draw a payment card number in groups."""
    digits = luhn(draw_value(form, draw))
    mark = draw.choice(" -")
    if len(digits) == 15:
        return mark.join((digits[:4], digits[4:10], digits[10:]))
    return mark.join(digits[place : place + 4] for place in range(0, 16, 4))


def draw_bad_card(draw: random.Random) -> str:
    """Draw what is like a payment card number, with a wrong check digit."""
    digits = luhn(draw_value("4{n14}", draw))
    return digits[:-1] + str((int(digits[-1]) + draw.randrange(1, 9)) % 10)


def draw_mail(draw: random.Random) -> str:
    """Draw the address of a person."""
    first = draw.choice(("ines", "ravi", "karin", "tomasz", "yuki", "lucia", "paolo", "dana"))
    last = draw.choice(("duarte", "menon", "lindqvist", "zielinski", "sato", "ortega", "whitfield"))
    host = draw.choice(
        ("gmail.com", "web.de", "orange.fr", "wp.pl", "kth.se", "brightfold.io", "yandex.ru")
    )
    return (
        draw.choice((f"{first}.{last}", f"{first[0]}{last}", f"{first}{draw.randrange(60, 99)}"))
        + f"@{host}"
    )


def draw_password(draw: random.Random, signs: str = "!@%+=*?^~#") -> str:
    """Draw a password: of people, of generators, or of several words."""
    first, second = draw.sample(WORDS, 2)
    leet = str.maketrans("aeio", "4310")
    letters = string.ascii_letters + string.digits
    return draw.choice(
        (
            lambda: f"{first}{draw.randrange(1960, 2027)}{draw.choice(signs)}",
            lambda: f"{first.lower()}{draw.randrange(10, 999)}{draw.choice(signs)}",
            lambda: f"{first}{draw.choice('-_.')}{second}{draw.randrange(10, 99)}",
            lambda: f"{first.translate(leet)}{draw.choice(signs)}{draw.randrange(10, 999)}",
            lambda: (
                draw.choice(letters)
                + "".join(draw.choices(letters + signs, k=draw.randrange(9, 20)))
                + draw_digits(draw, 1)
                + draw.choice(letters)
            ),
            lambda: (
                draw.choice(("Qwertz", "azerty", "Asdfgh", "zxcvbn", "1q2w3e4r"))
                + draw.choice(signs)
                + str(draw.randrange(100, 9999))
            ),
            lambda: "".join(draw.choices(letters, k=9)) + str(draw.randrange(10)),
            lambda: (
                f"{first.lower()}-{second.lower()}-{draw.choice(SEED_WORDS)}-{draw.randrange(99)}"
            ),
        )
    )()


def draw_safe_password(draw: random.Random) -> str:
    """Draw a password that needs no quotes in a shell or an address."""
    return draw_password(draw, "-_.~")


def draw_phrase(draw: random.Random) -> str:
    """Draw four or five words, with a sign between them."""
    words = draw.sample(SEED_WORDS, draw.choice((4, 5)))
    return draw.choice(" -_.").join(words) + draw.choice(("", str(draw.randrange(10, 99))))


def encode(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()


def draw_jwt(draw: random.Random) -> str:
    """Draw a web token with a true header and claims."""
    header = {"alg": draw.choice(("HS256", "HS512")), "typ": "JWT"}
    claims = {"sub": draw_value("{g}", draw), "scope": "orders", "exp": 1_790_000_000}
    parts = [encode(json.dumps(part, separators=(",", ":"))) for part in (header, claims)]
    texts = [part.rstrip("=").replace("+", "-").replace("/", "_") for part in parts]
    return ".".join((*texts, draw_value("{d43}", draw)))


def draw_encoded_env(draw: random.Random) -> str:
    """Draw settings in base64, one of which is a known token."""
    form = draw.choice(("glsa_{a32}_{h8}", "dapi{h32}", "ghp_{a36}", "lin_api_{a40}"))
    return encode(f"REGION=eu1\nAPI_TOKEN={draw_value(form, draw)}\n")


def draw_percent(draw: random.Random) -> str:
    """Draw a password in percent encoding."""
    password = draw_password(draw) + draw.choice(("&7", "/x9", "@2", ":4"))
    return urllib.parse.quote(password, safe="")


def draw_escaped(draw: random.Random) -> str:
    """Draw a password in the escapes of JSON."""
    return (
        draw_safe_password(draw) + draw.choice((r"\u0026", r"\u003d", r"\/")) + draw_digits(draw, 2)
    )


def draw_rows(head: str, draw: random.Random, indent: str = "") -> str:
    """Draw the rows of a private key."""
    rows = [(head + draw_value("{b64}", draw))[:64]]
    rows += [draw_value("{b64}", draw) for _ in range(draw.randrange(4, 10))]
    return ("\n" + indent).join([*rows, draw_value("{b30}==", draw)])


BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
DRAWS: dict[str, Callable[[random.Random], str]] = {
    "pw": draw_password,
    "pwu": draw_safe_password,
    "phrase": draw_phrase,
    "word": lambda draw: draw.choice(WORDS) + draw_digits(draw, 2),
    "w4": lambda draw: " ".join(draw.sample(SEED_WORDS, 4)),
    "basic": lambda draw: encode("svc:" + draw_password(draw)),
    "b64pw": lambda draw: encode(draw_password(draw)),
    "b64docker": lambda draw: encode(
        json.dumps({"auths": {"r.example": {"auth": encode("ci:" + draw_password(draw))}}})
    ),
    "b64env": draw_encoded_env,
    "percent": draw_percent,
    "escaped": draw_escaped,
    "jwt": draw_jwt,
    "age": lambda draw: "AGE-SECRET-KEY-1" + "".join(draw.choices(BECH32.upper(), k=58)),
    "rsa": lambda draw: draw_rows("MIIEowIBAAKCAQEA", draw),
    "rsa4": lambda draw: draw_rows("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", draw, "    "),
    "openssh": lambda draw: draw_rows("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE", draw),
    "ulid": lambda draw: "01J" + "".join(draw.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=23)),
    "bech38": lambda draw: "".join(draw.choices(BECH32, k=38)),
    "bech58": lambda draw: "".join(draw.choices(BECH32, k=58)),
    "mail": draw_mail,
    "visa": lambda draw: draw_card("4{n14}", draw),
    "visa-plain": lambda draw: luhn(draw_value("4{n14}", draw)),
    "mastercard": lambda draw: draw_card("53{n13}", draw),
    "amex": lambda draw: draw_card("37{n12}", draw),
    "bad-card": draw_bad_card,
    "ssn": draw_ssn,
    "cedula": draw_cedula,
    "pan": draw_pan,
    "aadhaar": draw_aadhaar,
    "thai": draw_thai,
    "nit": draw_nit,
    "ird": draw_ird,
    "cpf": draw_cpf,
    "dni": draw_dni,
    "nie": draw_nie,
    "codice": draw_codice,
    "pesel": draw_pesel,
    "tckn": draw_tckn,
    "personnummer": draw_personnummer,
    "rrn": draw_rrn,
    "rut": draw_rut,
    "nir": draw_nir,
    "bsn": draw_bsn,
    "sin": draw_sin,
    "tfn": draw_tfn,
    "nino": draw_nino,
    "resident": draw_resident,
    "hetu": draw_hetu,
    "southafrica": draw_southafrica,
    "nif": draw_nif,
    "mynumber": draw_mynumber,
}
MIN_PIECE = 4
SECRET_COUNT, HARMLESS_COUNT = 310, 320


def read_texts(source: str) -> Iterator[tuple[str, str]]:
    """Yield each text of a source with its kind."""
    for group in re.split(r"(?m)^=== ", source)[1:]:
        kind, _, body = group.partition("\n")
        texts = body.split("\n") if kind.endswith("*") else re.split(r"(?m)^--$", body)
        for text in texts:
            if text.strip():
                yield kind.rstrip("*"), text.strip("\n")


def fill_text(form: str, draw: random.Random) -> tuple[str, tuple[str, ...]]:
    """Fill the fields of a text; return it with the pieces in its marks."""
    pieces: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("iban-"):
            value = draw_iban(name.removeprefix("iban-"), draw)
        else:
            value = DRAWS[name](draw) if name in DRAWS else name
        rows = value.split() if name == "phrase" else [row.strip() for row in value.split("\n")]
        pieces.extend(row for row in rows if len(row) >= MIN_PIECE)
        return value

    text = re.sub("⟦(.+?)⟧", fill, draw_value(form, draw))
    return text, tuple(dict.fromkeys(pieces))


def surround(text: str, draw: random.Random) -> str:
    """Return a text as it stands in a note: often with words before and after it."""
    before = draw.choice(LEADS) + "\n\n" if draw.random() < 0.6 else ""
    after = "\n\n" + draw.choice(TAILS) if draw.random() < 0.6 else ""
    return before + text + after + "\n"


def choose_texts(
    texts: list[tuple[str, str]], count: int, draw: random.Random
) -> list[tuple[str, str]]:
    """Return so many of the texts, of every kind at least one, in their order."""
    places = draw.sample(range(len(texts)), len(texts))
    kinds = {texts[place][0]: place for place in places}
    chosen = set(kinds.values())
    remainder = [place for place in places if place not in chosen]
    return [texts[place] for place in sorted([*chosen, *remainder[: count - len(chosen)]])]


def read_pairs(source: str) -> list[tuple[str, str]]:
    """Return the pairs of a name and a format, one on a line."""
    pairs = (line.partition(" ") for line in source.strip().split("\n"))
    return [(name, form) for name, _, form in pairs]


def secret_notes(seed: int) -> list[Note]:
    """Return about 300 notes with one secret each."""
    draw = random.Random(f"judged-secret-{seed}")
    texts = list(read_texts(SECRETS))
    for name, form in read_pairs(TOKENS):
        texts.append((f"token-{name}", draw.choice(TOKEN_CARRIERS).replace("{s}", f"⟦{form}⟧")))
    for name, form in read_pairs(VARIABLES):
        carrier = draw.choice(VARIABLE_CARRIERS).replace("{k}", name)
        texts.append(("variable", carrier.replace("{s}", f"⟦{form}⟧")))
    notes = []
    for number, (kind, form) in enumerate(choose_texts(texts, SECRET_COUNT, draw)):
        text, pieces = fill_text(form, draw)
        notes.append(Note(f"{kind}-{number}", surround(text, draw), pieces))
    return notes


def personal_notes(seed: int) -> list[Note]:
    """Return about 120 notes with one piece of personal data each."""
    draw = random.Random(f"judged-personal-{seed}")
    notes = []
    for number, (kind, form) in enumerate(read_texts(PERSONAL)):
        text, pieces = fill_text(form, draw)
        notes.append(Note(f"{kind}-{number}", surround(text, draw), pieces, personal=True))
    return notes


def harmless_notes(seed: int) -> list[Note]:
    """Return about 320 notes that hold no secret, and look as if they did."""
    draw = random.Random(f"judged-harmless-{seed}")
    texts = choose_texts(list(read_texts(HARMLESS)), HARMLESS_COUNT, draw)
    notes = []
    for number, (kind, form) in enumerate(texts):
        text, _ = fill_text(form, draw)
        notes.append(Note(f"{kind}-{number}", surround(text, draw)))
    return notes
