"""What the checks of a take say: check_<name>_<verdict>, filled in from the check's facts. key: (English, Chinese)"""

WORDS: dict[str, tuple[str, str]] = {
    "check_length_ok": ("The length fits the text.", "时长与文本相符。"),
    "check_too_long_warn": (
        "Perhaps too long: {seconds} s for {characters} characters, about {expected} s would do. Listen for repeats.",
        "可能过长：{characters} 个字符用了 {seconds} 秒，约 {expected} 秒即可。请留意是否有重复或过长停顿。",
    ),
    "check_too_long_fail": (
        "Too long: {seconds} s for {characters} characters, where about {expected} s would do. Re-roll it.",
        "过长：{characters} 个字符用了 {seconds} 秒，约 {expected} 秒即可，可能有重复或胡言。请重新生成。",
    ),
    "check_too_short_warn": (
        "Short: {seconds} s for {characters} characters, where about {expected} s would do. Listen for missing words.",
        "偏短：{characters} 个字符只有 {seconds} 秒，通常约 {expected} 秒。请留意是否漏字。",
    ),
    "check_too_short_fail": (
        "Too short: {seconds} s for {characters} characters, where about {expected} s would do. Re-roll it.",
        "过短：{characters} 个字符只有 {seconds} 秒，通常约 {expected} 秒，有漏字。请重新生成。",
    ),
    "check_ending_ok": ("The model said by itself that it was done.", "模型自行说完。"),
    "check_ending_warn": (
        "Stopped on request: the text is not spoken to its end.",
        "按要求停止：文本没有读完。",
    ),
    "check_ending_fail": (
        "The text may not be spoken to its end ({state}). Re-roll it.",
        "文本可能没有读完（{state}）。请重新生成。",
    ),
    "check_sound_ok": ("There is sound in it.", "有声音。"),
    "check_sound_fail": ("There is next to no sound in it. Re-roll it.", "几乎没有声音。请重新生成。"),
    "check_silence_ok": ("No long pause in it.", "没有过长的停顿。"),
    "check_silence_warn": (
        "A pause of {seconds} s at {at} s: listen whether it belongs there.",
        "{at} 秒处有 {seconds} 秒停顿，请听听是否合适。",
    ),
    "check_silence_fail": (
        "{seconds} s of silence at {at} s: something is missing. Re-roll it.",
        "{at} 秒处有 {seconds} 秒静音，可能缺了内容。请重新生成。",
    ),
    "check_clipping_ok": ("No clipping.", "没有削波。"),
    "check_clipping_warn": (
        "A few samples ({percent} %) are cut off at full scale: listen for crackle.",
        "少量采样（{percent} %）达到满幅被削平，请留意爆音。",
    ),
    "check_clipping_fail": (
        "{percent} % of it is cut off at full scale and sounds harsh. Re-roll it, or lower cfg_value.",
        "{percent} % 的采样被削平，听感刺耳。请重新生成，或降低 cfg_value。",
    ),
    "check_edges_ok": ("It begins and ends in silence.", "首尾干净。"),
    "check_edges_warn": (
        "{what} at the {where}: listen, and trim it or re-roll.",
        "{where}有{what}，请试听，必要时修剪或重新生成。",
    ),
    "check_words_ok": ("The recogniser hears the text.", "识别结果与文本一致。"),
    "check_words_warn": (
        "The recogniser hears {percent} % of it differently: listen to it.",
        "识别结果有 {percent} % 不同，请试听。",
    ),
    "check_words_fail": (
        "The recogniser hears something else ({percent} % are wrong). Re-roll it.",
        "识别结果与文本不符（{percent} % 有误）。请重新生成。",
    ),
    "check_jump_warn": (
        "{jump} dB beside its neighbour: listen to both, and re-roll it.",
        "与相邻段相差 {jump} dB，请对比试听，必要时重新生成。",
    ),
    "check_jump_fail": (
        "{jump} dB beside its neighbour, a jump that everybody hears. Re-roll it.",
        "与相邻段相差 {jump} dB，跳变明显，请重新生成。",
    ),
    "check_likeness_warn": (
        "Only {percent} % like its voice: listen to it.",
        "与该声音的相似度仅 {percent} %，请试听。",
    ),
    "check_likeness_fail": (
        "Only {percent} % like its voice: it sounds like somebody else. Re-roll it.",
        "与该声音的相似度仅 {percent} %，听起来像另一个人，请重新生成。",
    ),
    "edge_start": ("start", "开头"),
    "edge_end": ("end", "结尾"),
    "edge_noise": ("Noise", "噪声"),
    "edge_click": ("A click", "爆音"),
    "edge_cut": ("A word that may be cut off", "可能被截断的字词"),
}
