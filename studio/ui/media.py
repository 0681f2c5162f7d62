"""Sound and pictures of takes for the browser, and the small WAV and path work that the page needs.

A visitor gets at a take only through a signed address that the server wrote into a page meant for that
visitor: gradio's own file route knows nothing of the data folder, and ids alone open nothing. The key
lives as long as the process.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import re
import secrets
import threading
import time
import wave
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from studio.export_takes import marked_wav
from studio.pictures import spectrogram_png, waveform_png
from studio.store import Store, StoreError
from studio.takes import TakeRecord
from studio.voices import VoiceLibrary, is_voice_id

PREFIX = "studio/take"
VOICE_PREFIX = "studio/voice"
PARCEL_PREFIX = "studio/parcel"
PARCEL_SECONDS = 86400  # after that one of an earlier run is removed
PARCELS_KEPT = 8  # prepared downloads that wait to be fetched; the oldest goes first
PRIVATE = {"Cache-Control": "private, max-age=3600"}
LEVELS_PER_PIECE = 4  # one per latent of a patch
LIVE_COLUMNS = 1200  # points of the live lane at most, however long the take
LANE_COLUMNS = 220  # points of the small waveform in a list
NOT_VALID = "This address is not valid (any more). Reload the page."


class Media:
    """Writes signed addresses and answers them. One per process."""

    def __init__(self, store: Store, voices: VoiceLibrary | None = None) -> None:
        self._store = store
        self._voices = voices or VoiceLibrary(store)
        self._parcels = Parcels(store.data_dir / "parcels")
        self._key = secrets.token_bytes(32)
        self._draw = lru_cache(maxsize=64)(self._draw_uncached)
        self._lane = lru_cache(maxsize=1024)(self._lane_uncached)

    def address(self, take_id: str, what: str) -> str:
        """Address of "sound", "download", "recipe", "waveform" or "spectrogram", relative to the page.

        A download is the same sound with tags that say how it was made.
        """
        return f"{PREFIX}/{take_id}/{self._signature(take_id)}/{what}"

    def lane(self, take_id: str) -> str:
        """The take's outline as an SVG path in a box of LANE_COLUMNS x 2, "" when its file is gone or damaged."""
        return self._lane(take_id)

    def voice_address(self, voice_id: str) -> str:
        """Address of a voice's sound, relative to the page."""
        return f"{VOICE_PREFIX}/{voice_id}/{self._signature(voice_id)}/sound"

    def voice_lane(self, voice_id: str) -> str:
        """The outline of a voice's sound, as :meth:`lane` draws it; "" when its file is gone or damaged."""
        path = self._voices.folder / f"{voice_id}.wav"
        return self._lane(voice_id) if is_voice_id(voice_id) and path.is_file() else ""

    def offer(self, make: Callable[[Path], Path], name: str) -> str:
        """Address of a file that ``make`` writes now, into a folder that it is given, to be downloaded as ``name``.

        It can be fetched until PARCELS_KEPT others have been offered.
        """
        return f"{PARCEL_PREFIX}/{self._parcels.add(make, name)}"

    def routes(self) -> list[Route]:
        """For ``launch(app_kwargs={"routes": ...})``."""
        methods = ["GET", "HEAD"]
        return [
            Route(f"/{PREFIX}/{{take_id}}/{{signature}}/{{what}}", self._answer, methods=methods),
            Route(f"/{VOICE_PREFIX}/{{voice_id}}/{{signature}}/sound", self._voice_answer, methods=methods),
            Route(f"/{PARCEL_PREFIX}/{{token}}", self._parcels.answer, methods=methods),
        ]

    def _signature(self, what: str) -> str:
        return hmac.new(self._key, what.encode(), hashlib.sha256).hexdigest()[:32]

    def _is_signed(self, what: str, signature: str) -> bool:
        return hmac.compare_digest(self._signature(what).encode(), signature.encode())

    def _voice_answer(self, request: Request) -> Response:
        voice_id = request.path_params["voice_id"]
        if not self._is_signed(voice_id, request.path_params["signature"]):
            return PlainTextResponse(NOT_VALID, 403)
        try:
            path = self._voices.audio_path(voice_id)
        except StoreError as error:
            return PlainTextResponse(str(error), 404)
        return FileResponse(path, media_type="audio/wav", headers=PRIVATE)

    def _answer(self, request: Request) -> Response:
        take_id, what = request.path_params["take_id"], request.path_params["what"]
        if not self._is_signed(take_id, request.path_params["signature"]):
            return PlainTextResponse(NOT_VALID, 403)
        try:
            record = self._store.take(take_id)
            return self._content(record, what, dark=request.query_params.get("dark") == "1")
        except StoreError as error:
            return PlainTextResponse(str(error), 404)

    def _content(self, record: TakeRecord, what: str, dark: bool) -> Response:
        name = file_name(record)
        if what == "sound":
            return FileResponse(
                self._store.audio_path(record.id), media_type="audio/wav", filename=name, headers=PRIVATE
            )
        if what == "download":
            saved_as = {"Content-Disposition": f"attachment; filename*=utf-8''{quote(name)}"}
            return Response(marked_wav(self._store, record), media_type="audio/wav", headers={**PRIVATE, **saved_as})
        if what == "recipe":
            saved_as = {"Content-Disposition": f"attachment; filename*=utf-8''{quote(Path(name).stem)}.json"}
            return Response(recipe_json(record), media_type="application/json", headers={**PRIVATE, **saved_as})
        if what in ("waveform", "spectrogram"):
            return Response(self._draw(record.id, what, dark), media_type="image/png", headers=PRIVATE)
        return PlainTextResponse("There is nothing here.", 404)

    def _draw_uncached(self, take_id: str, what: str, dark: bool) -> bytes:
        samples, rate = read_wav(self._store.audio_path(take_id))
        return (waveform_png if what == "waveform" else spectrogram_png)(samples, rate, dark=dark)

    def _lane_uncached(self, sound_id: str) -> str:
        try:
            if is_voice_id(sound_id):
                return outline(self._voices.audio(sound_id).samples)
            return outline(read_wav(self._store.audio_path(sound_id))[0])
        except StoreError:
            return ""


class Parcels:
    """Files that were made to be fetched by the one who asked: under addresses that nobody can guess."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: OrderedDict[str, tuple[Path, str]] = OrderedDict()  # token -> file, what the download is called
        self._lock = threading.Lock()
        for path in folder.glob("*.zip"):  # of earlier runs; another studio may work in this folder
            if time.time() - path.stat().st_mtime > PARCEL_SECONDS:
                path.unlink(missing_ok=True)

    def add(self, make: Callable[[Path], Path], name: str) -> str:
        """The token of the file that ``make`` writes into the folder that it is given. Raises what ``make`` raises."""
        path, token = make(self._folder), secrets.token_urlsafe(24)
        with self._lock:
            self._waiting[token] = path, name
            while len(self._waiting) > PARCELS_KEPT:
                self._waiting.popitem(last=False)[1][0].unlink(missing_ok=True)
        return token

    def answer(self, request: Request) -> Response:
        path, name = self._waiting.get(request.path_params["token"], (None, ""))
        if path is None or not path.is_file():
            return PlainTextResponse("This download is no longer there. Ask for it again.", 404)
        return FileResponse(path, media_type="application/zip", filename=name, headers=PRIVATE)


def read_wav(path: Path) -> tuple[np.ndarray, int]:
    """A take's file as float32 [n] and its rate. Only what the store writes: 16-bit mono PCM.

    Raises StoreError when the file is damaged.
    """
    try:
        with wave.open(str(path), "rb") as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            return samples.astype(np.float32) / 32768, file.getframerate()
    except (wave.Error, EOFError, OSError, ValueError) as error:
        raise StoreError(f"The audio of take {path.stem} is damaged ({error or 'it is cut off'}).") from error


def join_wavs(pieces: Sequence[bytes]) -> bytes:
    """Several WAV files of one format as one."""
    if len(pieces) == 1:
        return pieces[0]
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        for index, piece in enumerate(pieces):
            with wave.open(io.BytesIO(piece), "rb") as file:
                if index == 0:
                    out.setparams(file.getparams())
                out.writeframes(file.readframes(file.getnframes()))
    return buffer.getvalue()


def levels(samples: np.ndarray) -> list[int]:
    """Peaks of a piece of audio for the live lane, LEVELS_PER_PIECE of them, 0..99."""
    if not len(samples):
        return []
    edges = np.linspace(0, len(samples), LEVELS_PER_PIECE + 1).astype(int)[:-1]
    peaks = np.maximum.reduceat(np.abs(samples), edges)
    return np.clip(peaks * 99, 0, 99).round().astype(int).tolist()


def thinned(peaks: Sequence[int], most: int = LIVE_COLUMNS) -> list[int]:
    """``peaks`` in at most ``most`` columns, each the loudest of what it stands for."""
    step = max(-(-len(peaks) // most), 1)
    return [max(peaks[start : start + step]) for start in range(0, len(peaks), step)]


def outline(samples: np.ndarray, columns: int = LANE_COLUMNS) -> str:
    """The loudest sample of each column, mirrored, as an SVG path; the loudest of all reaches the edge."""
    if not len(samples):
        return ""
    edges = np.linspace(0, len(samples), columns + 1).astype(int)[:-1]
    peaks = np.maximum.reduceat(np.abs(samples), np.minimum(edges, len(samples) - 1))
    peaks = np.maximum(peaks / max(float(peaks.max()), 1e-4), 0.02)
    return "".join(f"M{x}.5 {1 - peak:.2f}V{1 + peak:.2f}" for x, peak in enumerate(peaks))


def file_name(record: TakeRecord) -> str:
    """What a download is called: the first words, the seed, and the id's time, safe on every system."""
    words = re.findall(r"\w+", record.spoken_text)[:6]
    stem = "-".join(words)[:48] or "take"
    return f"{stem}_seed{record.seed}_{record.id[:15]}.wav"


def recipe_json(record: TakeRecord) -> str:
    return json.dumps(record.recipe(), ensure_ascii=False, indent=2)
