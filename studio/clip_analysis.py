"""A clip listened to once: what the check card, the picture and the cut are all made from."""

from __future__ import annotations

from dataclasses import dataclass

from studio.clip_faults import Clipping, find_clipping
from studio.clip_measures import Frames, read_frames
from studio.speakers import Speakers, count_speakers
from studio.speech_activity import Activity, find_speech
from voxcpm_core.audio import Audio


@dataclass(frozen=True)
class Analysis:
    """Frames, speech, clipped places and voices (None: not measured) of one clip."""

    audio: Audio
    frames: Frames
    activity: Activity
    clipping: Clipping
    speakers: Speakers | None


def analyse(audio: Audio) -> Analysis:
    """Measure a clip that :func:`voxcpm_core.audio.check_audio` accepts."""
    frames = read_frames(audio)
    activity = find_speech(frames)
    return Analysis(audio, frames, activity, find_clipping(audio.samples), count_speakers(audio, activity.regions))
