"""Words of “Was this made here?”. key: (English, Chinese)"""

WORDS: dict[str, tuple[str, str]] = {
    "origin": ("Was this made here?", "这是在这里生成的吗？"),
    "origin_hint": (
        "Every file that leaves the studio says that it is AI-made. Drop a sound file to see what is found in it.",
        "从本工作室导出的文件都标明由 AI 生成。拖入音频文件即可查看其中的标记。",
    ),
    "origin_file": ("Sound file", "音频文件"),
    "origin_ask": ("Give a sound file.", "请提供音频文件。"),
    "origin_looking": ("Looking for marks …", "正在查找标记……"),
    "origin_yes": ("Yes, this was made here.", "是，这是在这里生成的。"),
    "origin_likely": (
        "It is marked as made by a machine, probably by a studio like this one; nothing ties it to this one.",
        "文件带有机器生成的标记，可能出自同类工作室，但无法确认出自本工作室。",
    ),
    "origin_unknown": (
        "No mark was found. That proves nothing: marks can be taken out.",
        "没有找到标记。这并不能证明什么：标记可以被去除。",
    ),
    "origin_tags": ("Tags", "标签"),
    "origin_credentials": ("Content Credentials", "内容凭证"),
    "origin_watermark": ("Watermark", "水印"),
    "origin_take": ("Takes", "录音库"),
    "origin_status_found": ("found", "找到"),
    "origin_status_not_found": ("not found", "未找到"),
    "origin_status_broken": ("broken", "已损坏"),
    "origin_status_not_available": ("not asked", "未检查"),
    "origin_tags_none": ("The file’s tags do not say that it is AI-made.", "文件标签未标明由 AI 生成。"),
    "origin_credentials_none": ("The file carries no Content Credentials.", "文件不带内容凭证。"),
    "origin_watermark_none": ("There is no watermark in the sound.", "声音中没有水印。"),
    "origin_take_none": ("No stored take has exactly this sound.", "录音库中没有完全相同的声音。"),
    "origin_credentials_broken": ("The file was changed after it was signed.", "文件签名后被改动过。"),
    "origin_signed_here": ("Signed by this studio, unchanged since.", "由本工作室签名，此后未改动。"),
    "origin_signed_elsewhere": (
        "Signed with a key that this studio does not know, unchanged since.",
        "由本工作室不认识的密钥签名，此后未改动。",
    ),
    "origin_install": ("Comes with: {pip}", "安装后可用：{pip}"),
}
