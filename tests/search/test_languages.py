"""Questions in other languages than English: each finds its answer, and small talk finds none."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.index.reader import Catalog
from memtool.search.prose import search_prose
from memtool.store import config

GERMAN = {
    "dec-redis": ("Sitzungen liegen in Redis", "Damit sie einen Neustart überleben.\n"),
    "dec-backup": (
        "Sicherungen der Datenbank laufen nachts",
        "Um drei Uhr, auf dem Zweitserver.\n",
    ),
    "dec-zahlung": (
        "Zahlungen werden wiederholt",
        "Eine fehlgeschlagene Zahlung geht erneut ein.\n",
    ),
    "dec-freigabe": ("Freigaben macht das Team am Dienstag", "Nie an einem Freitag.\n"),
}
FRENCH = {
    "dec-redis": ("Les sessions sont dans Redis", "Elles survivent ainsi au redémarrage.\n"),
    "dec-backup": ("Les sauvegardes tournent la nuit", "À trois heures, sur le second serveur.\n"),
    "dec-paie": ("Les paiements échoués sont relancés", "Trois fois, puis un humain regarde.\n"),
    "dec-livre": ("On livre le mardi", "Jamais une mise en production un vendredi.\n"),
}
RUSSIAN = {
    "dec-redis": ("Сессии хранятся в Redis", "Так они переживают перезапуск.\n"),
    "dec-backup": ("Резервные копии базы делаются ночью", "Каждые три часа.\n"),
    "dec-plata": ("Неудачные платежи повторяются", "Три раза, затем смотрит человек.\n"),
    "dec-reliz": ("Новый релиз выходит по вторникам", "Никогда в пятницу.\n"),
}
STORES = {"german": GERMAN, "french": FRENCH, "russian": RUSSIAN}

ASKED = (
    ("german", "Warum liegen unsere Sitzungen in Redis?", "dec-redis"),
    ("german", "Wann laufen Sicherungen von Datenbanken?", "dec-backup"),
    ("german", "Was passiert mit einer fehlgeschlagenen Zahlung?", "dec-zahlung"),
    ("german", "An welchem Tag macht das Team die Freigabe?", "dec-freigabe"),
    ("french", "Pourquoi les sessions sont-elles dans Redis ?", "dec-redis"),
    ("french", "À quelle heure tourne la sauvegarde ?", "dec-backup"),
    ("french", "Que devient un paiement échoué ?", "dec-paie"),
    ("french", "Peut-on livrer un mardi ?", "dec-livre"),
    ("russian", "Где хранятся сессии Redis?", "dec-redis"),
    ("russian", "Когда делается резервная копия базы?", "dec-backup"),
    ("russian", "Что происходит с неудачным платежом?", "dec-plata"),
    ("russian", "Когда выходят новые релизы?", "dec-reliz"),
)

SMALL_TALK = (
    ("german", "Danke, das ist gut so, bitte mach weiter"),
    ("german", "Kannst du mir das noch einmal sagen?"),
    ("french", "Merci, c'est tout pour moi"),
    ("french", "Est-ce que tu peux faire plus ?"),
    ("russian", "Спасибо, и что теперь?"),
    ("russian", "Почему так?"),
)


def answers(sandbox: Sandbox, language: str, text: str, settings: str = "") -> list[str]:
    for id_, (title, body) in STORES[language].items():
        sandbox.memory(id_, body, title=title)
    if settings:
        sandbox.write(".memory/config.toml", settings)
    return [hit.record.id for hit in search_prose(sandbox.scope(), text, (), 5).hits]


@pytest.mark.parametrize(("language", "text", "expected"), ASKED)
def test_a_question_gets_its_answer_first(
    sandbox: Sandbox, language: str, text: str, expected: str
) -> None:
    """Its stop words ask for nothing, and other endings and compounds of a word count half."""
    assert answers(sandbox, language, text)[:1] == [expected]


@pytest.mark.parametrize(("language", "text"), SMALL_TALK)
def test_small_talk_gets_nothing(sandbox: Sandbox, language: str, text: str) -> None:
    """Function words of any of these languages are not a question."""
    assert answers(sandbox, language, text) == []


def test_the_setting_names_the_language_of_latin_letters(sandbox: Sandbox) -> None:
    """The setting chooses the endings that are stemmed; the index follows."""
    sandbox.memory("dec-a", "Die Häuser der Kunden.\n", title="Kunden")

    def holding(term: str) -> int:
        tree = sandbox.scope().tree
        assert isinstance(tree, Catalog)
        return tree.index.df(term)

    assert (holding("haus"), holding("hauser")) == (0, 1)
    sandbox.write(".memory/config.toml", '[search]\nlanguage = "german"\n')
    assert (holding("haus"), holding("hauser")) == (1, 0)
    assert sandbox.json("search", "hauses")["results"][0]["id"] == "dec-a"


def test_every_language_of_the_setting_has_a_stemmer() -> None:
    """A language that can be chosen gives stems."""
    import Stemmer

    choices = config.BY_KEY["search.language"].choices
    assert set(choices) <= set(Stemmer.algorithms())


@pytest.mark.parametrize(
    ("prompt", "body"),
    [
        ("writelock?", "The journal calls acquireWriteLock first.\n"),
        ("filelock", "Every writer takes file_lock.\n"),
        ("v2.1.4", "The release v2.1.4 broke the import.\n"),
        ("v2.1.4", "Since 2.1.4 the import is slow.\n"),
        ("what broke in 2.1.4?", "The release v2.1.4 lost rows.\n"),
    ],
)
def test_a_part_of_a_name_is_found(sandbox: Sandbox, prompt: str, body: str) -> None:
    """An identifier is found by words inside it, a version with and without its letter."""
    sandbox.memory("dec-a", body, title="A note")
    sandbox.memory(
        "dec-b", "The lock of the door is new; 2 keys, 1 spare, 4 users.\n", title="Other"
    )
    assert [hit.record.id for hit in search_prose(sandbox.scope(), prompt, (), 5).hits] == ["dec-a"]
