"""The page's words, English and Chinese, in one table.

Fixed words (labels, buttons) go to the browser as :func:`label` keys and are translated there. Words that
change with the work (states, notices) are written by the server with :func:`say`, in the language that
:func:`language_of` reads off the request.
"""

from __future__ import annotations

from functools import lru_cache

import gradio as gr
from gradio.i18n import I18nData

LANGUAGE_COOKIE = "vx_language"  # set by the page's language button; without it the browser's own preference counts

# key: (English, Chinese)
WORDS: dict[str, tuple[str, str]] = {
    # header and tabs
    "tab_tts": ("Text to speech", "文本转语音"),
    "tab_history": ("History", "历史"),
    "tagline": ("Text becomes takes", "让文字成为录音"),
    "other_language": ("中文", "English"),
    "switch_language": ("Show this page in Chinese", "以英文显示此页面"),
    "switch_theme": ("Light or dark", "切换浅色或深色"),
    # the model
    "model_loading": ("Loading the model", "正在载入模型"),
    "model_ready": ("Ready", "就绪"),
    "model_failed_title": ("The model could not be loaded", "模型载入失败"),
    "model_retry": ("Try again", "重试"),
    "model_retry_hint": (
        "Put it right and press “Try again”, or start the app with --model nano for the built-in demonstration voice.",
        "解决后请点击“重试”，或使用 --model nano 启动内置的演示声音。",
    ),
    "model_nano": (
        "nano is a small demonstration voice that comes with the studio and speaks simple English. It shows how "
        "everything works; for real recordings start the app with --model openbmb/VoxCPM2.",
        "nano 是随工作室附带的小型演示声音，只会说简单的英语，仅用于展示功能；"
        "正式录音请用 --model openbmb/VoxCPM2 启动。",
    ),
    # text
    "text": ("Text", "文本"),
    "text_hint": ("Type or paste what should be spoken …", "输入或粘贴要朗读的内容……"),
    "sample_story": ("Story", "故事"),
    "sample_notice": ("Announcement", "通知"),
    "sample_numbers": ("Numbers", "数字"),
    "sample_chinese": ("Chinese", "中文"),
    "preview": ("Will be spoken", "将要朗读"),
    "preview_empty": ("Nothing yet. Type a text or choose a sample.", "还没有内容。请输入文本或选择一个示例。"),
    "preview_seconds": ("about {seconds} s", "约 {seconds} 秒"),
    "preview_characters": ("{count} characters", "{count} 个字符"),
    "preview_one_character": ("1 character", "1 个字符"),
    "preview_control": ("Voice", "声音"),
    "preview_long": (
        "Long for one take: voices drift after about 45 seconds. Consider speaking it in parts.",
        "对单次录音来说偏长：约 45 秒后声音可能漂移，建议分段朗读。",
    ),
    "preview_short": (
        "Very short texts can come out unsteady. Listen, and re-roll if needed.",
        "过短的文本效果可能不稳定，请试听，必要时重新生成。",
    ),
    "control": ("Voice description", "声音描述"),
    "control_optional": ("Optional. How should it sound?", "可选。希望听起来是什么样的？"),
    "control_hint": ("A warm, elderly storyteller, speaking slowly", "温暖的老年讲述者，语速缓慢"),
    "control_unsupported": (
        "{generation} has no voice design, so there is no voice description here. VoxCPM2 has it.",
        "{generation} 不支持声音设计，因此这里没有声音描述。VoxCPM2 支持。",
    ),
    # settings
    "settings": ("Settings", "设置"),
    "advanced": ("Advanced", "高级"),
    "cfg_value": ("Guidance (cfg_value)", "引导强度 (cfg_value)"),
    "cfg_value_info": (
        "Higher keeps closer to the text; 1.5–1.6 calms a buzz on long texts.",
        "越高越贴合文本；1.5–1.6 可减轻长文本的嗡声。",
    ),
    "inference_timesteps": ("Solver steps (inference_timesteps)", "求解步数 (inference_timesteps)"),
    "inference_timesteps_info": ("More steps: finer, slower.", "步数越多越精细，也越慢。"),
    "seed": ("Seed", "种子"),
    "seed_info": ("Empty: a new one for every take. 0 – 4294967295.", "留空：每次使用新的种子。0 – 4294967295。"),
    "seed_hint": ("new every time", "每次更新"),
    "seed_clear": ("Unpin", "取消固定"),
    "normalize": ("Write out numbers and signs", "展开数字与符号"),
    "normalize_info": ("The preview shows the result.", "预览会显示结果。"),
    "temperature": ("Temperature", "温度"),
    "temperature_info": (
        "Scale of the starting noise. 1 is what the model was trained with.",
        "初始噪声的强度，训练时为 1。",
    ),
    "reset": ("Model’s defaults", "恢复模型默认值"),
    "summary_cfg": ("cfg {value}", "cfg {value}"),
    "summary_steps": ("{value} steps", "{value} 步"),
    "summary_seed": ("seed {value}", "种子 {value}"),
    "summary_new_seed": ("new seed", "新种子"),
    "summary_normalize": ("numbers written out", "展开数字"),
    # work
    "generate": ("Generate", "生成"),
    "stop": ("Stop", "停止"),
    "live": ("Live", "实时"),
    "live_player": ("Live sound", "实时声音"),
    "live_toggle": ("Play or pause the live sound", "播放或暂停实时声音"),
    "made_bar": ("Made and heard so far", "已生成与已播放"),
    "state_idle": ("Idle", "空闲"),
    "state_waiting": ("Waiting", "等待中"),
    "state_starting": ("Starting", "开始"),
    "state_speaking": ("Speaking", "生成中"),
    "state_stopping": ("Stopping", "正在停止"),
    "state_stop": ("Done", "完成"),
    "state_limit": ("Ended at the limit", "到达上限"),
    "state_cancelled": ("Stopped", "已停止"),
    "state_error": ("Failed", "失败"),
    "state_unsaved": ("Not saved", "未保存"),
    "patches": ("patches", "块"),
    "seconds_made": ("s made", "秒已生成"),
    "rtf_title": (
        "Seconds of work per second of sound: below 1 is faster than listening",
        "每秒声音所需的计算秒数：小于 1 表示快于播放",
    ),
    "end_limit": (
        "This take reached the length limit before the model had finished. What was made is kept.",
        "模型说完之前已达到长度上限，已生成的部分已保存。",
    ),
    "end_cancelled": (
        "Stopped. What had been made is kept as a partial take.",
        "已停止，已生成的部分保存为未完成的录音。",
    ),
    "end_error": (
        "Something went wrong while speaking. What had been made is kept.",
        "生成时出错，已生成的部分已保存。",
    ),
    "end_error_empty": ("Something went wrong before any sound was made.", "在生成任何声音之前出错。"),
    "end_nothing": (
        "Stopped before any sound was made. Nothing was saved.",
        "在生成任何声音之前已停止，没有保存内容。",
    ),
    "trouble": (
        "Something unexpected went wrong. Please try again; the program’s log has the details.",
        "发生意外错误，请重试；详情见程序日志。",
    ),
    "ask_text": (
        "There is nothing to speak yet. Type a text or choose a sample.",
        "还没有可朗读的内容，请输入文本或选择示例。",
    ),
    "bad_seed": (
        "“{value}” is not a seed. Use a whole number from 0 to 4294967295, or leave the field empty for a new one.",
        "“{value}”不是有效的种子。请使用 0 到 4294967295 之间的整数，或留空以使用新种子。",
    ),
    "text_too_long": (
        "{count} characters are too long for one take: split it. {limit} are the most.",
        "{count} 个字符对单次录音来说过长，请拆分。最多 {limit} 个字符。",
    ),
    "whole_number": (
        "{name} is a whole number from {low} to {high}, not {value}.",
        "{name} 应为 {low} 到 {high} 之间的整数，不能是 {value}。",
    ),
    "wrong_kind": ("{name} is {wanted}, not {value}.", "{name} 应为{wanted}，不能是 {value}。"),
    "out_of_range": ("{name} is {low} to {high}, not {value}.", "{name} 的范围是 {low} 到 {high}，不能是 {value}。"),
    # takes
    "take": ("Take", "录音"),
    "take_empty_title": ("Your take appears here", "录音会显示在这里"),
    "take_empty_1": ("Choose a sample or type a text", "选择示例或输入文本"),
    "take_empty_2": ("Press Generate; sound starts while it is being made", "点击“生成”，边生成边播放"),
    "take_empty_3": ("Every take is kept with its seed and settings", "每条录音都连同种子和设置一起保存"),
    "take_empty_keys": ("generates", "生成"),
    "take_empty_stop": ("stops", "停止"),
    "play": ("Play or pause", "播放或暂停"),
    "position": ("Position", "播放位置"),
    "waveform": ("Waveform", "波形"),
    "spectrogram": ("Spectrogram", "频谱图"),
    "download": ("Download WAV", "下载 WAV"),
    "download_short": ("WAV", "WAV"),
    "recipe": ("Recipe", "配方"),
    "recipe_info": ("Everything that made this take", "生成此录音的全部信息"),
    "copy": ("Copy", "复制"),
    "copied": ("Copied", "已复制"),
    "pin": ("Pin seed", "固定种子"),
    "pinned": ("Seed {seed} is pinned for the next takes.", "已固定种子 {seed}。"),
    "reroll": ("Re-roll", "换种子重来"),
    "reuse": ("Reuse", "套用"),
    "reuse_title": ("Put this text, seed and settings back into the form", "将此文本、种子和设置填回表单"),
    "reused": ("Text, seed and settings of this take are in the form.", "此录音的文本、种子和设置已填入表单。"),
    "length": ("Length", "时长"),
    "speed": ("Speed", "速度"),
    "first_audio": ("First sound", "首段声音"),
    "model": ("Model", "模型"),
    "rate": ("Rate", "采样率"),
    "ended": ("Ended", "结束"),
    "cfg_short": ("cfg_value", "cfg_value"),
    "steps_short": ("Steps", "步数"),
    "recent": ("Recent takes", "最近的录音"),
    "recent_empty": ("No takes yet.", "还没有录音。"),
    "search": ("Search", "搜索"),
    "search_hint": ("Words in the text or description", "文本或描述中的词"),
    "found": ("{shown} of {count} takes", "共 {count} 条，显示 {shown} 条"),
    "found_none": ("No take contains these words.", "没有包含这些词的录音。"),
    "more": ("Show more", "显示更多"),
    "take_gone": ("This take is no longer in the studio.", "此录音已不存在。"),
    "ai_note": (
        "Every take is AI-made speech. Say so when you publish it.",
        "所有录音均为 AI 生成语音，发布时请注明。",
    ),
}

# What the core says while it loads (in English); the rest of such a sentence is a name and stays.
STAGES = {
    "looking for": "查找",
    "downloading": "下载",
    "reading the checkpoint": "读取模型文件",
    "loading weights": "载入权重",
    "ready": "就绪",
}

CHINESE_LOCALES = ("zh", "zh-CN", "zh-Hans", "zh-TW", "zh-Hant")


def _table(column: int) -> dict[str, str]:
    return {key: words[column] for key, words in WORDS.items()}


@lru_cache(maxsize=1)
def translations() -> gr.I18n:
    """The table as gradio wants it, for ``launch(i18n=...)``."""
    return gr.I18n(en=_table(0), **{locale: _table(1) for locale in CHINESE_LOCALES})


def label(key: str) -> I18nData:
    """A fixed word that the browser translates."""
    if key not in WORDS:
        raise KeyError(key)
    return I18nData(key)


def say(language: str, key: str, **values: object) -> str:
    """A word or sentence in ``language`` ("en" or "zh"), with its values filled in: plain text, not HTML."""
    text = WORDS[key][1 if language == "zh" else 0]
    return text.format(**values) if values else text


def stage(language: str, said: str) -> str:
    """A stage of loading, as the core names it, in ``language``."""
    known = next((words for words in STAGES if said.startswith(words)), None)
    return STAGES[known] + said[len(known) :] if known and language == "zh" else said


def language_of(request: gr.Request | None) -> str:
    """ "en" or "zh": what the visitor chose in the page, else what the browser asks for first."""
    if request is None:
        return "en"
    chosen = (getattr(request, "cookies", None) or {}).get(LANGUAGE_COOKIE)
    wanted = chosen or (getattr(request, "headers", None) or {}).get("accept-language", "")
    return "zh" if wanted.strip().lower().startswith("zh") else "en"
