"""The page's look: gradio's theme on the tokens of assets/studio.css, and what goes into the document's head."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ASSETS = Path(__file__).resolve().parents[2] / "assets"

FONTS = [
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Noto Sans",
    "Noto Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "sans-serif",
]
MONO_FONTS = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"]

# gradio's variables by the token that they take. One entry serves light and dark: the token itself changes.
TOKENS = {
    "body_background_fill": "bg",
    "body_text_color": "ink",
    "body_text_color_subdued": "ink-2",
    "background_fill_primary": "surface",
    "background_fill_secondary": "bg",
    "border_color_primary": "line",
    "border_color_accent": "accent",
    "border_color_accent_subdued": "line",
    "color_accent_soft": "accent-soft",
    "link_text_color": "accent-ink",
    "link_text_color_hover": "accent-ink",
    "link_text_color_active": "accent-ink",
    "link_text_color_visited": "accent-ink",
    "block_background_fill": "surface",
    "block_border_color": "line",
    "block_label_background_fill": "surface",
    "block_label_border_color": "line",
    "block_label_text_color": "ink-2",
    "block_title_text_color": "ink",
    "block_info_text_color": "ink-2",
    "panel_background_fill": "surface",
    "panel_border_color": "line",
    "input_background_fill": "field",
    "input_background_fill_focus": "field",
    "input_background_fill_hover": "field",
    "input_border_color": "line-2",
    "input_border_color_focus": "accent",
    "input_border_color_hover": "line-3",
    "input_placeholder_color": "ink-3",
    "button_primary_background_fill": "accent",
    "button_primary_background_fill_hover": "accent-strong",
    "button_primary_border_color": "accent",
    "button_primary_border_color_hover": "accent-strong",
    "button_primary_text_color": "on-accent",
    "button_primary_text_color_hover": "on-accent",
    "button_secondary_background_fill": "surface",
    "button_secondary_background_fill_hover": "hover",
    "button_secondary_border_color": "line-2",
    "button_secondary_border_color_hover": "line-3",
    "button_secondary_text_color": "ink",
    "button_secondary_text_color_hover": "ink",
    "button_cancel_background_fill": "surface",
    "button_cancel_background_fill_hover": "red-soft",
    "button_cancel_border_color": "line-2",
    "button_cancel_border_color_hover": "red",
    "button_cancel_text_color": "ink",
    "button_cancel_text_color_hover": "red",
    "checkbox_background_color": "field",
    "checkbox_background_color_selected": "accent",
    "checkbox_border_color": "line-3",
    "checkbox_border_color_focus": "accent",
    "checkbox_border_color_hover": "line-3",
    "checkbox_border_color_selected": "accent",
    "checkbox_label_background_fill": "surface",
    "checkbox_label_background_fill_hover": "hover",
    "checkbox_label_background_fill_selected": "surface",
    "checkbox_label_border_color": "line-2",
    "checkbox_label_text_color": "ink",
    "checkbox_label_text_color_selected": "ink",
    "slider_color": "accent",
    "accordion_text_color": "ink",
    "shadow_drop": "shadow",
}
DARK_TWINS_MISSING = {"accordion_text_color", "shadow_drop"}


@lru_cache(maxsize=1)
def theme() -> gr.themes.Base:
    """Base theme, small and square, with every colour taken from a token."""
    values = {}
    for name, token in TOKENS.items():
        values[name] = f"var(--vx-{token})"
        if name not in DARK_TWINS_MISSING:
            values[f"{name}_dark"] = f"var(--vx-{token})"
    return gr.themes.Base(
        font=FONTS,
        font_mono=MONO_FONTS,
        radius_size=gr.themes.sizes.radius_sm,
        spacing_size=gr.themes.sizes.spacing_sm,
        text_size=gr.themes.sizes.text_md,
    ).set(
        **values,
        block_shadow="none",
        block_shadow_dark="none",
        block_label_shadow="none",
        button_primary_shadow="none",
        button_secondary_shadow="none",
        input_shadow="none",
        input_shadow_focus="0 0 0 3px var(--vx-ring)",
        input_shadow_focus_dark="0 0 0 3px var(--vx-ring)",
        block_border_width="1px",
        block_border_width_dark="1px",
        input_border_width="1px",
        input_border_width_dark="1px",
    )


@lru_cache(maxsize=1)
def head() -> str:
    """Styles, script and icon of the page, self-contained: nothing is fetched from elsewhere."""
    css, script = (gathered(suffix) for suffix in ("css", "js"))
    css = css.replace("@logo@", svg_uri("logo.svg"))
    return f'<link rel="icon" href="{svg_uri("logo.svg")}"><style>{css}</style><script>{script}</script>'


def gathered(suffix: str) -> str:
    """studio.css or studio.js, followed by what the rooms add: studio-<room>.css or .js."""
    rooms = sorted(ASSETS.glob(f"studio-*.{suffix}"))
    return "\n".join(path.read_text(encoding="utf-8") for path in [ASSETS / f"studio.{suffix}", *rooms])


def svg_uri(name: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode((ASSETS / name).read_bytes()).decode()


def html(value: str = "", **options: Any) -> gr.HTML:
    """A piece of the page that is plain HTML in our own style."""
    return gr.HTML(value, apply_default_css=False, padding=False, **options)


class EarlyHead:
    """Puts :func:`head` into the page's document (ASGI middleware).

    ``launch(css=..., js=..., head=...)`` hands these to gradio's script, which adds them when it has started: the
    visitor's language would come too late for it, and the page would be painted without styles first.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        start: Message = {}
        body = bytearray()

        async def collect(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_page(message):
                start = message  # held back until its length is known
            elif not start:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    await _send_page(start, bytes(body), send)

        await self._app(scope, receive, collect)


def _is_page(start: Message) -> bool:
    headers = dict(start["headers"])
    return headers.get(b"content-type", b"").startswith(b"text/html") and b"content-encoding" not in headers


async def _send_page(start: Message, body: bytes, send: Send) -> None:
    body = body.replace(b"<head>", b"<head>" + head().encode(), 1)
    headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
    await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
