"""Words of the Voice Design tab. key: (English, Chinese)"""

WORDS: dict[str, tuple[str, str]] = {
    "tab_design": ("Voice design", "声音设计"),
    "design_control_hint": (
        "An elderly man with a deep, warm voice, speaking slowly, like a grandfather telling a story",
        "一位声音低沉温暖的老先生，语速缓慢，像在给孩子讲故事",
    ),
    "design_control_info": (
        "Who speaks, and how. Every take comes out differently: make up to three and pick.",
        "谁在说、怎么说。每次结果都不同：一次生成最多三条，再挑选。",
    ),
    "design_text": ("Preview text", "试听文本"),
    "design_text_hint": ("One or two sentences that the voice should say …", "让这个声音说一两句话……"),
    "design_takes": ("Takes", "条数"),
    "design_seed_info": (
        "Take 1 uses this seed, take 2 the next one, take 3 the one after. Empty: new ones. 0 – 4294967295.",
        "第 1 条用此种子，第 2、3 条依次加一。留空则每次更新。0 – 4294967295。",
    ),
    "ask_control": (
        "There is no description yet. Say who should speak and how, or choose an example.",
        "还没有声音描述。请描述谁在说、怎么说，或选择一个示例。",
    ),
    "design_unsupported": (
        "{generation} cannot design voices from a description. VoxCPM2 can: start the app with --model openbmb/VoxCPM2 "
        "or with --model nano to try this tab.",
        "{generation} 不支持根据描述设计声音，请用 --model openbmb/VoxCPM2 启动，或用 --model nano 试用此页。",
    ),
    "design_nano": (
        "nano follows a description only in part: it speaks simple English, slow and fast are followed, woman or man "
        "and low or high partly, the rest not. VoxCPM2 is made for all of it, in English and Chinese.",
        "nano 只能部分遵循描述：仅说简单的英语，能遵循快慢，性别与音高部分遵循，其余不行。VoxCPM2 可遵循中英文描述。",
    ),
    "wrong_takes": ("takes is 1, 2 or 3, not {value}.", "takes 应为 1、2 或 3，不能是 {value}。"),
    "design_reused": (
        "Description, text, seed and settings of this take are in Voice design.",
        "此录音的描述、文本、种子和设置已填入声音设计。",
    ),
    # the guide
    "guide": ("How to describe a voice", "怎样描述声音"),
    "guide_build": (
        "Two or three of these make a good description; say each thing once and leave out what does not matter.",
        "从下面选两三项即可写出好的描述；每项只说一次，不重要的就不写。",
    ),
    "guide_gender": ("Who", "性别"),
    "guide_gender_words": ("a woman · a man · a girl · a boy", "女性 · 男性 · 女孩 · 男孩"),
    "guide_age": ("Age", "年龄"),
    "guide_age_words": ("a child · in her twenties · middle-aged · elderly", "孩童 · 二十多岁 · 中年 · 老年"),
    "guide_pitch": ("Pitch and timbre", "音高与音色"),
    "guide_pitch_words": ("low · high · warm · bright · husky · clear", "低沉 · 高亢 · 温暖 · 明亮 · 沙哑 · 清澈"),
    "guide_pace": ("Pace", "语速"),
    "guide_pace_words": ("speaking slowly · unhurried · brisk · fast", "语速缓慢 · 从容 · 轻快 · 很快"),
    "guide_mood": ("Mood", "情绪"),
    "guide_mood_words": (
        "calm · cheerful · tender · stern · tired · excited",
        "平静 · 欢快 · 温柔 · 严肃 · 疲惫 · 激动",
    ),
    "guide_accent": ("Accent and role", "口音与身份"),
    "guide_accent_words": (
        "with a British accent · like a news reader · like a sports commentator",
        "带英式口音 · 像新闻播音员 · 像体育解说",
    ),
    "guide_tip_1": (
        "Describe the voice, not the sentence: the preview text says what is spoken.",
        "描述声音本身，而不是句子的内容：要说的话写在试听文本里。",
    ),
    "guide_tip_2": (
        "Contradictions (“a deep voice of a little girl”) make takes that differ wildly.",
        "自相矛盾的描述（如“小女孩低沉的嗓音”）会让每条结果相差很大。",
    ),
    "guide_tip_3": (
        "A voice is kept by saving a take, not by its seed: the same seed with another text is another voice.",
        "想保留声音请把录音保存为声音：同一种子换了文本，声音也会变。",
    ),
    "guide_dialects": ("Dialects of Chinese", "中文方言"),
    "guide_dialects_how": (
        "Name the dialect in the description and write the text as it is said in it: its own words, not standard "
        "Chinese. A click fills both.",
        "在描述里写明方言，并用该方言的说法写文本，而不是普通话书面语。点击即可同时填入两者。",
    ),
    "guide_languages": (
        "Other languages (30 in all) need no word in the description: write the text in that language.",
        "其他语言（共 30 种）无需在描述中说明，直接用该语言写文本即可。",
    ),
}
