"""Words of the adapter panel. key: (English, Chinese)"""

WORDS: dict[str, tuple[str, str]] = {
    "adapter": ("Adapter (LoRA)", "适配器 (LoRA)"),
    "adapter_name": ("Adapter", "适配器"),
    "adapter_none": ("None: the model as it is", "无：使用原模型"),
    "adapter_strength": ("Strength", "强度"),
    "adapter_strength_info": (
        "1 is how it was trained; less lets more of the model through.",
        "1 为训练时的强度；越低越接近原模型。",
    ),
    "adapter_on": ("On", "启用"),
    "adapter_again": ("Look again", "刷新列表"),
    "adapter_where": (
        "An adapter is a voice or a style that was trained. Put its folder (lora_weights.safetensors beside "
        "lora_config.json) into {folder}, then press “Look again”.",
        "适配器是训练得到的声音或风格。请把它的文件夹（lora_weights.safetensors 和 lora_config.json）放入 {folder}，"
        "然后点“刷新列表”。",
    ),
    "adapter_where_shared": (
        "An adapter is a voice or a style that was trained. Whoever runs this studio can add some.",
        "适配器是训练得到的声音或风格，由本站的运行者添加。",
    ),
    "adapter_fits": (
        "It fits the model. It counts for the takes made from now on in this form, and stands in their recipes.",
        "与当前模型匹配。此后由此表单生成的录音都会使用它，并记录在配方中。",
    ),
    "adapter_strength_range": (
        "The strength of an adapter is a number from 0 to {most}, not {value}.",
        "适配器强度应为 0 到 {most} 的数，不能是 {value}。",
    ),
    "adapter_reused": (
        "The adapter {name} of this take is not there any more.",
        "此录音使用的适配器 {name} 已不存在。",
    ),
    "ask_adapter": (
        "No adapter is chosen, or it is switched off. Choose one under “Adapter (LoRA)”, or use a clip.",
        "没有选择适配器，或未启用。请在“适配器 (LoRA)”中选择，或改用录音。",
    ),
}
