"""Everyday words: what people say about any work at all, so that it tells little about one.

How rare a word is in a store of thirty memories says nothing about how much it tells: `please`,
`test` and `change` are rare there, too. The list holds the stems of common English words and of
those that stand in prompts about any program. It was written by hand, and looked through against
how often words stand in the manuals of a Unix system.
"""

from __future__ import annotations

WORTH = 0.3
"""What an everyday word is worth beside 1 for any other."""

_STEMS = (
    "abl abov accept accomplish accord account across act actual add addit advanc afternoon "
    "again ago agre ahead allow almost alon along alreadi also although alway amaz amount anoth "
    "answer anybodi anymor anyon anyth anyway apart appar appear appli appreci approach "
    "argument around array articl ask assum attempt avail avoid awar away awesom back bad base "
    "basic beauti becaus becom befor begin behav behind believ belong below beneath besid best "
    "better between beyond big bit both bother bottom bring broad bug build busi buy call came "
    "capabl care carri case caus certain chanc chang check choos citi class clean clear click "
    "close code come command comment commit common compani compar compil complet compon comput "
    "concern condit configur consid consist contain content continu control cool correct coupl "
    "cours cover crazi creat current cut daili dark data date day deal dear debug decid deep "
    "default defin definit delet depend describ despit detail develop differ difficult direct "
    "directori discuss display document doubl doubt down download draft drive drop due dure "
    "each earli easi easili edit effect effort either element els email enabl end enjoy enough "
    "ensur entir entri environ equal error especi even evening event eventu ever everi "
    "everybodi everyon everyth exact exampl excel except execut exist expect explain explor "
    "extra eye face fact fail failur fall fals famili far fast favorit featur feel few field "
    "figur file filenam fill final find fine finish first fit five fix fixtur flag focus folder "
    "follow food forget form format forward found four framework free fresh friend full fun "
    "function further futur game gave general generat get girl git give glad go goal good got "
    "great group grow guess guid guy half hand handl happen happi hard hate head health hear "
    "heard heavi hello help here hey hi high histori hold home hope hour hous howev huge human "
    "hundr idea identifi imagin immedi implement import improv includ increas inde index info "
    "initi input insert insid instal instanc instead intend interest interfac internal involv "
    "issu item job join keep kept key kid kind knew know known lack languag larg last late "
    "later learn least leav left less let letter level librari life light like line list listen "
    "littl live load local log logic long look loop lose lost lot loud love low luck lunch made "
    "main maintain make man manag mani mark matter mayb mean mention merg messag method middl "
    "might mind minut miss mistak mode modern modul moment money month more morn most mother "
    "move movi much music must name near necessari need neither never new news next nice night "
    "nobodi none nor normal note noth notic now null number object obvious odd offer offic "
    "often ok okay old onc one onlin onto open oper opinion option order origin other otherwis "
    "ought out output outsid over overal own packag page paper paramet pars part parti "
    "particular pass past path pattern peopl per perfect perform perhap period person phone "
    "photo pick pictur piec place plan play pleas plenti point poor popular posit possibl power "
    "pr practic prefer prepar present pretti prevent previous price print privat probabl "
    "problem procedur proceed process produc product program progress project proper provid "
    "public pull purpos push put python qualiti queri question quick quit rais random rang "
    "rather reach react read readi real realiz realli reason recent recommend reduc refactor "
    "refer regard regular relat releas remain rememb remind remov repeat replac repli repo "
    "report repositori request requir respect respons rest result return review right room rule "
    "run sad safe said same save saw say scale school script search second section see seem "
    "seen select send sens sentenc separ seri serious server servic set setup sever shall share "
    "short show side sign similar simpl simpli simplifi sinc singl sit site situat size skip "
    "sleep slight slow small smart snippet softwar solut solv somebodi somehow someon someth "
    "sometim somewher soon sorri sort sound sourc space speak special specif spend stand "
    "standard start state statement status step still stop stori straight strang string strong "
    "structur studi stuff style subject success sudden suggest suitabl summar summari suppli "
    "support suppos sure surpris syntax system tabl tag take talk task teach team tell templat "
    "ten term terribl test text thank therefor thing think third though thought three through "
    "throughout thus time tini tip titl today togeth told tomorrow tonight too took tool top "
    "topic total touch toward town track travel tri trip troubl true truli turn twice two type "
    "under understand understood unit unless unlik until up updat upgrad url usag use user "
    "usual valu variabl various version via view visit wait walk want watch water way weather "
    "web websit week weird well went whatev whenev wherev whether while white whole wide wife "
    "wish within without woman wonder word work world worri wors worst worth write wrong wrote "
    "yeah year yes yesterday yet young zero"
)
_known: set[str] = set()


def worth(term: str) -> float:
    """Return how much a term tells in any text: 1, or less for an everyday word or a number."""
    if not _known:
        _known.update(_STEMS.split())
    return WORTH if term in _known or term.isdigit() else 1.0
