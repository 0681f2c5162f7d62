"""Words of the Cloning tab. key: (English, Chinese)"""

WORDS: dict[str, tuple[str, str]] = {
    "tab_cloning": ("Cloning", "声音克隆"),
    "cloning_mode": ("Way of cloning", "克隆方式"),
    "cloning_controllable": ("Controllable", "可控"),
    "cloning_ultimate": ("Ultimate", "极致"),
    "cloning_about_controllable": (
        "The clip gives the voice; pace and mood may be asked for in words.",
        "参考录音只决定音色，语速和情绪可以用文字说明。",
    ),
    "cloning_about_ultimate": (
        "The model goes on speaking from the clip, whose exact words it must know: the closest likeness, in the "
        "clip’s own manner. A control text has no effect here, so there is none: the clip itself says how to speak.",
        "模型接着参考录音往下说，因此必须知道录音的准确文字；相似度最高，语气也随录音。"
        "此方式不接受风格说明，怎么说由录音本身决定。",
    ),
    "cloning_no_reference": (
        "{generation} takes no reference clip, so only ultimate cloning is offered. VoxCPM2 can do both: start the app "
        "with --model openbmb/VoxCPM2.",
        "{generation} 不支持参考音频，只提供极致克隆。VoxCPM2 两种都支持，请用 --model openbmb/VoxCPM2 启动。",
    ),
    "cloning_no_control": (
        "{generation} does not follow a control text, so there is no field for one. VoxCPM2 does.",
        "{generation} 不支持风格说明，因此不显示该栏。VoxCPM2 支持。",
    ),
    "cloning_control_off": (
        "Ultimate cloning takes no control text: leave it out, or choose controllable cloning.",
        "极致克隆不接受风格说明：请去掉它，或改用可控克隆。",
    ),
    "cloning_nano": (
        "nano takes only a hint of a voice from a clip; VoxCPM2 is made for it.",
        "nano 只能从录音中学到一点音色；VoxCPM2 才适合克隆。",
    ),
    "cloning_source": ("Whose voice", "使用谁的声音"),
    "cloning_source_clip": ("A clip", "一段录音"),
    "cloning_source_voice": ("A saved voice", "已保存的声音"),
    "cloning_source_adapter": ("The adapter’s own", "适配器自身的声音"),
    "cloning_about_adapter": (
        "A trained adapter is a voice of its own: no clip is needed. Choose it under “Adapter (LoRA)” below.",
        "训练好的适配器自带声音，不需要录音。请在下方“适配器 (LoRA)”中选择。",
    ),
    "cloning_clip": ("Clip: drop a file, or record", "录音：拖入文件或现场录制"),
    "cloning_clip_empty": (
        "5 to 30 seconds of one person, speaking normally in a quiet room, are best. Any audio format will do.",
        "最好是一个人在安静环境中正常说话 5–30 秒。任何音频格式都可以。",
    ),
    "cloning_looking": ("Listening to the clip …", "正在检查录音……"),
    "cloning_working": ("Working on the clip …", "正在处理录音……"),
    "cloning_trim": ("Trim", "裁剪"),
    "cloning_level": ("Level", "调整响度"),
    "cloning_denoise": ("Denoise", "降噪"),
    "cloning_undo": ("Back to the original", "还原"),
    "cloning_remove": ("Remove", "移除"),
    "cloning_denoise_absent": ("Denoise comes with: {pip}", "安装后可用降噪：{pip}"),
    "cloning_original": ("Original", "原始录音"),
    "cloning_improved": ("In use", "当前使用"),
    "cloning_in_use": ("Clip in use", "当前使用的录音"),
    "cloning_play_clip": ("Play: {name}", "播放：{name}"),
    "cloning_picture": (
        "Waveform of the clip: speech is underlined, clipped places are marked above, what Trim would leave out is "
        "faded",
        "录音波形：下方横条为语音，上方标记为削波，淡化部分会被裁掉",
    ),
    "cloning_steps": ("Done: {steps}", "已处理：{steps}"),
    "cloning_cut_to": ("Trim would keep {start} – {end} s.", "裁剪将保留 {start}–{end} 秒。"),
    "cloning_card_ok": ("Good for cloning", "适合克隆"),
    "cloning_card_warn": ("Usable; {count} to look at", "可用，有 {count} 项需留意"),
    "cloning_card_fail": ("Not good enough: {count} to mend", "不理想，有 {count} 项需处理"),
    "ref_mark_ok": ("good", "良好"),
    "ref_mark_warn": ("look", "留意"),
    "ref_mark_fail": ("bad", "不合格"),
    "cloning_transcript": ("Exact words of the clip", "录音的准确文字"),
    "cloning_transcript_hint": (
        "Every word that is said in the clip, and no other …",
        "录音里说的每一个字，不多也不少……",
    ),
    "cloning_transcribe": ("Transcribe", "自动识别"),
    "cloning_compare": ("Compare with what is heard", "与识别结果对照"),
    "cloning_transcribe_first": (
        "Transcribe uses Whisper “{model}”; the first time it is fetched from the Hugging Face hub.",
        "自动识别使用 Whisper “{model}”，首次使用时会从 Hugging Face 下载。",
    ),
    "cloning_transcribe_folder": (
        "Transcribe uses the Whisper model in {model}.",
        "自动识别使用 {model} 中的 Whisper 模型。",
    ),
    "cloning_transcribe_absent": ("Transcribe comes with: {pip}", "安装后可用自动识别：{pip}"),
    "cloning_transcribe_no_folder": (
        "Transcribe is off: there is no Whisper model in {model} (VOXCPM_RECOGNISER).",
        "无法自动识别：{model} 中没有 Whisper 模型（VOXCPM_RECOGNISER）。",
    ),
    "cloning_transcribing": ("Listening for the words …", "正在识别文字……"),
    "cloning_transcribed": (
        "Recognised ({spoken}). Read it against the clip: one wrong word is heard in every take.",
        "识别完成（{spoken}）。请对照录音检查：错一个字，每条结果都会受影响。",
    ),
    "cloning_transcribed_late": (
        "The clip was changed meanwhile, so the recognised words were not used.",
        "识别期间录音已更换，识别结果未采用。",
    ),
    "cloning_words_gone": (
        "The clip was cut, and where the words lie in it is not known: the transcript was cleared. Write what is said "
        "now, or press Transcribe.",
        "录音已裁剪，无法确定文字的位置，因此清空了文字。请重新填写，或点“自动识别”。",
    ),
    "cloning_words_cut": ("The transcript was cut with the clip. Check its ends.", "文字已随录音裁剪，请检查首尾。"),
    "cloning_words_ok": ("The words fit the length of the clip.", "文字与录音长度相符。"),
    "cloning_words_warn": (
        "About {estimate} s of text for {speech} s of speech: compare it with what is said.",
        "文字约需 {estimate} 秒，录音里有 {speech} 秒语音，请对照检查。",
    ),
    "cloning_words_fail": (
        "These words take about {estimate} s to say, but the clip has {speech} s of speech: they belong to another "
        "clip. Write what is said in this one.",
        "这些文字约需 {estimate} 秒，而录音只有 {speech} 秒语音，不可能是这段录音的内容。请填写这段录音里说的话。",
    ),
    "cloning_both": ("Also use the clip as reference (closest likeness)", "同时作为参考音频（相似度最高）"),
    "cloning_consent": ("I may use this voice", "我有权使用这个声音"),
    "cloning_consent_info": (
        "It is your own, or its speaker agreed. Noted with the voice and in every take.",
        "是您本人的声音，或已获说话人同意。会随声音和每条录音一起记录。",
    ),
    "cloning_consent_note": (
        "Consent: whoever made this said that they may use the voice.",
        "同意：制作者声明有权使用此声音。",
    ),
    "cloning_consent_kept": (
        "This voice may be used: that was said when it was saved.",
        "保存此声音时已声明有权使用。",
    ),
    "cloning_consent_made": (
        "A designed voice belongs to nobody: no consent is needed.",
        "设计出的声音不属于任何人，无需声明。",
    ),
    "ask_consent": (
        "Nothing is cloned without consent. If you may use this voice, tick “I may use this voice”, then try again.",
        "未经同意不能克隆。如果您有权使用这个声音，请勾选“我有权使用这个声音”，然后再试。",
    ),
    "ask_clip": (
        "There is no clip yet. Drop a file on the page, record one, or choose a saved voice.",
        "还没有录音。请拖入文件、现场录制，或选择已保存的声音。",
    ),
    "ask_voice": ("No saved voice is chosen. Choose one, or use a clip.", "还没有选择声音。请选择一个，或改用录音。"),
    "ask_words": (
        "Ultimate cloning needs the exact words of the clip. Write them, or press Transcribe.",
        "极致克隆需要录音的准确文字。请填写，或点“自动识别”。",
    ),
    "cloning_voice_no_words": (
        "This voice was saved without the words of its clip, so it cannot be continued. Use it in controllable "
        "cloning, or save it again with its words.",
        "此声音保存时没有文字，无法接着说。请用可控克隆，或带文字重新保存。",
    ),
    "cloning_voice_words": ("Its words: {words}", "其文字：{words}"),
    "cloning_clip_changed": (
        "The clip was changed while this waited, so nothing was made. Press Generate again.",
        "等待期间录音已更换，因此没有生成。请再点一次“生成”。",
    ),
    "cloning_wrong_mode": (
        "mode is controllable or ultimate, not {value}.",
        "mode 应为 controllable 或 ultimate，不能是 {value}。",
    ),
    "cloning_one_source": (
        "Give either a clip (audio) or the id of a saved voice (voice), not both and not neither.",
        "请提供录音（audio）或已保存声音的 id（voice），二者选一。",
    ),
    "cloning_text": ("Text", "文本"),
    "cloning_text_hint": ("What the voice should say …", "让这个声音说的话……"),
    "cloning_control": ("Control", "风格说明"),
    "cloning_control_hint": ("a little faster, cheerful", "稍快一些，语气欢快"),
    "cloning_save_name": ("Name for the voice", "声音名称"),
    "cloning_save": ("Save the clip as a voice", "将录音存为声音"),
    "cloning_saved": ("Saved as the voice {name}.", "已保存为声音 {name}。"),
    "cloning_reused": (
        "Text, control, seed and settings of this take are in Cloning. Its clip is not put back: choose it again.",
        "此录音的文本、风格说明、种子和设置已填入声音克隆；参考录音需重新选择。",
    ),
    # the lines of the check card
    "ref_length": ("Length", "时长"),
    "ref_speech": ("Speech", "语音"),
    "ref_loudness": ("Level", "响度"),
    "ref_clipping": ("Clipping", "削波"),
    "ref_noise": ("Noise", "噪声"),
    "ref_hum": ("Hum", "电流声"),
    "ref_background": ("Background", "背景"),
    "ref_bandwidth": ("Bandwidth", "带宽"),
    "ref_offset": ("DC offset", "直流偏移"),
    "ref_voicing": ("Voice", "发声"),
    "ref_speakers": ("Speakers", "说话人"),
    "ref_speakers_unknown": ("Speakers", "说话人"),
    "ref_start": ("Start", "开头"),
    "ref_end": ("End", "结尾"),
    "ref_transcript": ("Transcript", "文字"),
    "ref_words": ("Words", "用词"),
    "ref_usable": ("Usable", "可用"),
    "ref_length_warn": (
        "5 to 30 s of one speaker are best: record more, or trim.",
        "一个人说 5–30 秒最好：请多录一些，或裁剪。",
    ),
    "ref_speech_warn": (
        "There is little speech in it: trim the silence, or record more.",
        "语音太少：请裁掉静音或多录一些。",
    ),
    "ref_speech_fail": ("There is hardly any speech in it: choose another clip.", "几乎没有语音：请换一段录音。"),
    "ref_loudness_warn": ("Far from the usual level: press Level.", "响度异常：请点“调整响度”。"),
    "ref_clipping_warn": ("Peaks are cut off: record with less gain if you can.", "有削波：如可能请降低增益重录。"),
    "ref_clipping_fail": (
        "Badly clipped, the voice will sound harsh: record again with less gain.",
        "严重削波，声音会刺耳：请降低增益重录。",
    ),
    "ref_noise_warn": ("Noisy: try Denoise, or record in a quieter room.", "噪声较大：可试试降噪，或换安静的地方。"),
    "ref_noise_fail": (
        "The noise is nearly as loud as the voice: choose another clip.",
        "噪声几乎盖过人声：请换一段录音。",
    ),
    "ref_hum_warn": (
        "Mains hum of {hertz} Hz: try Denoise, or move away from chargers and lamps.",
        "有 {hertz} Hz 电流声：可试试降噪，或远离充电器和灯具。",
    ),
    "ref_background_warn": (
        "Music or another sound with tones lies behind the voice and will be cloned: use a clip without.",
        "人声背后有音乐或其他乐音，会被一起克隆：请用没有背景音的录音。",
    ),
    "ref_bandwidth_warn": (
        "Nothing lies above {khz} kHz, the voice will be dull: use the original recording if you can.",
        "{khz} kHz 以上没有声音，音色会发闷：如可能请用原始录音。",
    ),
    "ref_offset_warn": (
        "The wave is not centred: press Level, which mends this, too.",
        "波形偏离中线：点“调整响度”即可修正。",
    ),
    "ref_voicing_warn": (
        "A whisper: the clone will whisper, too. Use normal speech.",
        "这是耳语，克隆结果也会是耳语：请正常说话。",
    ),
    "ref_speakers_warn": (
        "More than one voice: trim to one speaker, or the clone will be a mixture.",
        "不止一个人：请裁剪到只有一个人，否则会混在一起。",
    ),
    "ref_speakers_unknown_ok": ("Counted after: {pip}", "安装后可检测：{pip}"),
    "ref_words_warn": (
        "The recogniser hears some other words: check the transcript. It heard: {heard}",
        "识别结果与文字有出入，请检查。识别为：{heard}",
    ),
    "ref_words_fail": (
        "The recogniser hears other words in the clip: the transcript belongs to another one. It heard: {heard}",
        "识别结果与文字完全不同，文字可能属于另一段录音。识别为：{heard}",
    ),
    "ref_start_warn": ("It starts inside a word: trim it to a pause.", "开头截断了字词：请裁剪到停顿处。"),
    "ref_end_warn": ("It ends inside a word: trim it to a pause.", "结尾截断了字词：请裁剪到停顿处。"),
}
