"""The words of a delivery report, in English and Chinese: what is measured, and what to do when it fails."""

from __future__ import annotations

LANGUAGES = ("en", "zh")

LABELS: dict[str, tuple[str, str]] = {
    "rms": ("Level (RMS)", "电平（RMS）"),
    "lufs": ("Loudness", "响度"),
    "true_peak": ("True peak", "真峰值"),
    "noise_floor": ("Noise floor", "本底噪声"),
    "head": ("Quiet at the head", "开头静音"),
    "tail": ("Quiet at the tail", "结尾静音"),
    "duration": ("Length", "时长"),
    "complete": ("Length as planned", "时长与计划一致"),
    "format": ("Format", "格式"),
    "bit_rate": ("Bit rate", "码率"),
    "sample_rate": ("Sample rate", "采样率"),
    "channels": ("Channels", "声道"),
    "chapters": ("Chapter marks", "章节标记"),
    "marked": ("Says that it is AI-made", "注明由 AI 生成"),
}

ADVICE: dict[str, tuple[str, str]] = {
    "rms": (
        "Export again with mastering on. If it fails again, some takes are very loud or very quiet: re-roll them.",
        "请打开母带处理后重新导出。若仍不合格，说明本章有过响或过轻的片段，请重新生成这些片段。",
    ),
    "lufs": (
        "Export again with mastering on. If it fails again, some takes are very loud or very quiet: re-roll them.",
        "请打开母带处理后重新导出。若仍不合格，说明本章有过响或过轻的片段，请重新生成这些片段。",
    ),
    "true_peak": (
        "Export again with mastering on: the limiter keeps peaks below the ceiling.",
        "请打开母带处理后重新导出：限幅器会把峰值压到上限以下。",
    ),
    "noise_floor": (
        "The takes are noisy in their pauses: use a cleaner reference for the voice (or denoise it) and render again.",
        "片段的停顿处有噪声：请换用更干净的参考音频（或先降噪），再重新生成。",
    ),
    "head": (
        "Export again with mastering on: it makes the room tone at the head as long as it must be.",
        "请打开母带处理后重新导出：开头的环境音会调整到要求的长度。",
    ),
    "tail": (
        "Export again with mastering on: it makes the room tone at the tail as long as it must be.",
        "请打开母带处理后重新导出：结尾的环境音会调整到要求的长度。",
    ),
    "duration": ("Split the chapter in two and export again.", "请把本章拆成两章后重新导出。"),
    "complete": (
        "The file is shorter or longer than what was written: export again, and check the disk if it stays so.",
        "文件时长与写入的内容不符：请重新导出；若仍如此，请检查磁盘。",
    ),
    "format": (
        "Shops that follow these numbers take MP3: export with the format MP3.",
        "遵循这些标准的平台只接受 MP3：请以 MP3 格式导出。",
    ),
    "bit_rate": (
        "Export again as MP3 at 44.1 kHz, which is written with a constant 192 kbit/s.",
        "请以 44.1 kHz 的 MP3 重新导出，码率固定为 192 kbit/s。",
    ),
    "sample_rate": ("Export again with this sample rate.", "请以该采样率重新导出。"),
    "channels": ("Export again: the studio writes one channel.", "请重新导出：本工作室只写入单声道。"),
    "chapters": (
        "Players would jump to the wrong place: export again, and do not edit the file with other programs.",
        "播放器会跳到错误的位置：请重新导出，且不要用其他程序改动文件。",
    ),
    "marked": (
        "The tags are gone: export again, and do not convert the file with other programs.",
        "标签已丢失：请重新导出，且不要用其他程序转换文件。",
    ),
}

PHRASES: dict[str, tuple[str, str]] = {
    "title": ("Delivery report", "交付报告"),
    "measured_on": ("Measured on the finished files, decoded again.", "对成品文件重新解码后测得。"),
    "preset": ("Preset", "预设"),
    "row": ("What", "项目"),
    "value": ("Measured", "实测"),
    "wanted": ("Wanted", "要求"),
    "status": ("Result", "结果"),
    "advice": ("What to do", "处理方法"),
    "pass": ("pass", "合格"),
    "fail": ("fail", "不合格"),
    "info": ("for information", "仅供参考"),
    "all_pass": ("All files pass.", "全部文件合格。"),
    "some_fail": ("{count} of {total} files fail.", "{total} 个文件中有 {count} 个不合格。"),
    "at_least": ("at least {low}", "至少 {low}"),
    "at_most": ("at most {high}", "至多 {high}"),
    "between": ("{low} to {high}", "{low} 至 {high}"),
    "constant": ("constant", "恒定"),
    "variable": ("variable", "可变"),
    "lossless": ("lossless", "无损"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "silence": ("silence", "静音"),
    "marks": ("{count} marks, {error} ms off at most", "{count} 个标记，最大偏差 {error} 毫秒"),
    "marks_wanted": ("{count} marks, {error} ms off at most", "{count} 个标记，最大偏差 {error} 毫秒"),
    "wrong_titles": ("titles differ", "标题不一致"),
    "acx_note": (
        "ACX itself takes AI narration only where it has authorised it; these are the numbers of shops of this kind.",
        "ACX 本身不接受未经授权的 AI 朗读；此处采用的是同类平台通行的数值。",
    ),
}


def spoken(table: dict[str, tuple[str, str]], key: str, language: str, **values: object) -> str:
    """A phrase in "en" or "zh" (English for any other language)."""
    return table[key][LANGUAGES.index(language) if language in LANGUAGES else 0].format(**values)
