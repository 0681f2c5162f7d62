"""Descriptions, texts and dialects that the Voice Design tab teaches by. They stay in their own language."""

from __future__ import annotations

from typing import NamedTuple

# What the chip says: the description it fills in.
DESCRIPTIONS: dict[str, str] = {
    "Low and slow": "A woman with a low voice, speaking slowly",
    "Storyteller": "An elderly man with a deep, warm voice, speaking slowly, like a grandfather telling a story",
    "News": "A middle-aged woman with a clear, even voice, reading the news at a brisk pace",
    "Cheerful": "A young woman with a bright voice, cheerful and friendly, unhurried",
    "Captain": "A man in his fifties with a low, husky voice, stern, with a Scottish accent",
    "讲故事": "一位年迈的男性，声音低沉温暖，语速缓慢，像在给孙辈讲故事",
    "播音": "中年女性，吐字清晰，语气平稳，语速稍快，像新闻播音员",
    "温柔": "年轻女性，声音轻柔，语气温柔，语速偏慢",
    "少年": "十几岁的男孩，声音清亮，语气兴奋，语速很快",
}

# Words of the chip by key of the table: the text that it fills in.
TEXTS: dict[str, str] = {
    "sample_story": "Come closer, and let me tell you how the little river found its way to the sea.",
    "sample_notice": "Good morning. The boat leaves at nine, and today the weather looks kind to us.",
    "sample_chinese": "来，坐近一点，我给你讲讲这条小河是怎么找到大海的。",
}


class Dialect(NamedTuple):
    """A dialect that VoxCPM2 speaks, with a description and a text in its own words."""

    name: str
    english: str
    control: str
    text: str


DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "四川话",
        "Sichuanese",
        "一位年轻女性，说四川话，语气爽快",
        "今天太阳好巴适哦，走嘛，我们去茶馆头坐一哈，摆哈龙门阵。",
    ),
    Dialect("粤语", "Cantonese", "一位中年男性，说粤语，语气亲切", "今日天气咁好，不如我哋去饮茶，慢慢倾下计啦。"),
    Dialect("吴语", "Wu", "一位年长女性，说吴语，语气软糯", "今朝天气蛮好，阿拉一道出去荡荡马路，好伐？"),
    Dialect(
        "东北话",
        "Northeastern",
        "一位中年男性，说东北话，嗓门洪亮，语气热情",
        "哎呀，外头老冷了，赶紧进屋上炕，咱唠会儿嗑。",
    ),
    Dialect("河南话", "Henan", "一位中年女性，说河南话，语气爽朗", "今儿个晌午咱喝胡辣汤，中不中？可得劲儿。"),
    Dialect("陕西话", "Shaanxi", "一位中年男性，说陕西话，语气憨厚", "今儿这碗面嫽得很，你赶紧咥，凉了就不美咧。"),
    Dialect(
        "山东话", "Shandong", "一位年轻男性，说山东话，语气实在", "今儿天真好，俺领着恁上集耍耍，晌午吃煎饼卷大葱。"
    ),
    Dialect("天津话", "Tianjin", "一位中年男性，说天津话，语气诙谐", "嘛事儿啊您了？介煎饼馃子刚出锅，趁热乎来一套。"),
    Dialect("闽南话", "Minnan", "一位年长男性，说闽南话，语气温和", "今仔日天气真好，咱做伙来食茶开讲，好无？"),
)
