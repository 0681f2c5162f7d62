"""Words of the Voices tab and of the voice chooser. key: (English, Chinese)"""

WORDS: dict[str, tuple[str, str]] = {
    "tab_voices": ("Voices", "声音"),
    # chooser
    "voice": ("Voice", "声音"),
    "voice_info": ("A saved voice speaks the text.", "由已保存的声音朗读文本。"),
    "voice_default": ("No voice (the model’s own)", "不使用（模型自带）"),
    "voice_unsupported": (
        "{generation} cannot take a reference, so saved voices cannot speak here. VoxCPM2 can.",
        "{generation} 不支持参考音频，因此无法使用已保存的声音。VoxCPM2 支持。",
    ),
    "voice_no_model": (
        "The model is not there yet. Voices can be tried when it is loaded.",
        "模型尚未就绪，载入后即可试用声音。",
    ),
    "voice_gone": (
        "This voice is no longer in the studio. Choose another one.",
        "此声音已不存在，请选择其他声音。",
    ),
    # list
    "voice_search": ("Search voices", "搜索声音"),
    "voice_search_hint": ("Name, description, transcript or tag", "名称、描述、文稿或标签"),
    "tags_all": ("all", "全部"),
    "voices_empty_title": ("Keep a voice you like", "保存您喜欢的声音"),
    "voices_empty_1": ("Make a take in Text to speech or Voice Design", "在“文本转语音”或“声音设计”中生成录音"),
    "voices_empty_2": ("Open it in History and press “Save as voice”", "在“历史”中打开它并点击“保存为声音”"),
    "voices_empty_3": ("Or import a bundle that somebody sent you", "或导入别人分享的声音包"),
    "voices_none": (
        "No voice fits. Use fewer words, or choose another tag.",
        "没有符合条件的声音，请减少搜索词或更换标签。",
    ),
    "voices_count": ("{count} voices", "{count} 个声音"),
    "voices_one": ("1 voice", "1 个声音"),
    "voices_some": ("{shown} of {count} voices", "{count} 个声音中的 {shown} 个"),
    "voice_select": ("Select {name}", "选择 {name}"),
    "voice_open": ("Open {name}", "打开 {name}"),
    "voice_play": ("Play the reference", "播放参考音频"),
    "voice_source_design": ("designed", "设计"),
    "voice_source_take": ("from a take", "来自录音"),
    "voice_source_clip": ("from a clip", "来自音频"),
    "voice_source_bundle": ("imported", "导入"),
    "voice_no_audio": (
        "The reference of this voice is missing: its audio file is no longer there. Import its bundle again, "
        "or make the voice again from a take.",
        "此声音的参考音频丢失：音频文件已不存在。请重新导入声音包，或从录音重新创建。",
    ),
    # bundle
    "voice_export": ("Export", "导出"),
    "voice_export_title": (
        "The selected voices as one bundle (ZIP); all of them when none is selected",
        "将所选声音导出为声音包 (ZIP)；未选择时导出全部",
    ),
    "voice_export_one": ("Export this voice as a bundle (ZIP)", "将此声音导出为声音包 (ZIP)"),
    "voice_export_none": ("There is no voice to export yet.", "还没有可导出的声音。"),
    "voice_exported": ("The bundle is on its way.", "声音包正在下载。"),
    "voice_import": ("Import bundle", "导入声音包"),
    "voice_imported": ("Imported: {names}.", "已导入：{names}。"),
    # one voice
    "voice_choose_title": ("Choose a voice", "选择一个声音"),
    "voice_choose": (
        "Listen to it, try it on your own text, rename it or tag it.",
        "试听、用您的文本试用、重命名或添加标签。",
    ),
    "voice_try": ("Try it on a text", "用文本试用"),
    "voice_try_hint": ("What should this voice say?", "让这个声音说什么？"),
    "voice_try_sample": (
        "Hello. This is how I sound when I read something new to you.",
        "你好，这是我为你朗读新内容时的声音。",
    ),
    "voice_speak": ("Speak", "朗读"),
    "voice_use": ("Use in Text to speech", "用于文本转语音"),
    "voice_edit": ("Name and tags", "名称与标签"),
    "voice_field_name": ("Name", "名称"),
    "voice_tags": ("Tags", "标签"),
    "voice_tags_info": ("Separated by commas.", "以逗号分隔。"),
    "voice_edit_save": ("Save changes", "保存更改"),
    "voice_edit_saved": ("Saved.", "已保存。"),
    "voice_delete": ("Delete voice", "删除声音"),
    "voice_deleted": ("{name} is deleted.", "已删除 {name}。"),
    "voice_restored": ("{name} is back.", "已恢复 {name}。"),
    "voice_seed": ("Seed", "种子"),
    "voice_made": ("Saved", "保存时间"),
    # from a take
    "save_voice": ("Save as voice", "保存为声音"),
    "save_voice_name": ("Name of the voice", "声音名称"),
    "save_voice_hint": ("For example: Harbour narrator", "例如：港口讲述者"),
    "save_voice_ask": ("Give the voice a name.", "请为声音命名。"),
    "save_voice_done": (
        "{name} is in Voices and can speak in Text to speech.",
        "{name} 已保存到“声音”，可用于文本转语音。",
    ),
}
