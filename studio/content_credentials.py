"""Content Credentials (C2PA): a signed statement inside a file that says how it was made.

From the optional package c2pa-python. The signing key and its certificates are made on this machine and stay in the
data folder, so others see a valid signature of an unknown signer, while this studio recognises its own. Nothing goes
over the network: no time stamp is asked for. Any later change of the file is found.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from studio.containers import ExportError

PIP_LINE = "pip install c2pa-python==0.38.1"
SOURCE_TYPE = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
MEDIA_TYPES = {
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".m4b": "audio/mp4",
}

_YEARS = 20
_KEY, _CHAIN, _ROOT = "key.pem", "chain.pem", "root.pem"


@dataclass(frozen=True)
class Credential:
    """What a file's manifest says. ``state``: "valid", "broken" (changed after signing, or forged) or "none"."""

    state: str
    made_here: bool = False
    tool: str = ""
    source_type: str = ""
    problems: tuple[str, ...] = ()


def available() -> bool:
    """Whether the package is installed; nothing is loaded to find out."""
    return all(importlib.util.find_spec(name) is not None for name in ("c2pa", "cryptography"))


def sign(source: Path, target: Path, folder: Path, tool: str, title: str, model: str) -> None:
    """Write ``source`` again as ``target`` with a manifest; the key is made in ``folder`` when there is none yet.

    Raises ExportError, and then leaves no ``target``.
    """
    import c2pa

    media_type = MEDIA_TYPES.get(target.suffix.lower())
    if media_type is None:
        raise ExportError(f"{target.suffix} files cannot carry Content Credentials: use WAV, FLAC, MP3, M4A or M4B.")
    chain, key = _identity(folder)
    try:
        info = c2pa.C2paSignerInfo(b"es256", chain, key, None)
        with (
            c2pa.Signer.from_info(info) as signer,
            c2pa.Builder(_manifest(tool, title, model, media_type)) as builder,
            open(source, "rb") as unsigned,
            open(target, "w+b") as signed,
        ):
            builder.sign(signer, media_type, unsigned, signed)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, c2pa.C2paError | OSError):
            raise ExportError(f"{target.name} could not be given Content Credentials: {error}") from error
        raise


def read(path: Path, folder: Path | None = None) -> Credential:
    """What a file's manifest says, and whether the key in ``folder`` signed it."""
    import c2pa

    root = folder / _ROOT if folder else None
    trust = root.read_text(encoding="ascii") if root and root.is_file() else ""
    settings = {"verify": {"verify_trust": bool(trust)}} | ({"trust": {"trust_anchors": trust}} if trust else {})
    try:
        with open(path, "rb") as file, c2pa.Context.from_dict(settings) as context:
            reader = c2pa.Reader.try_create(MEDIA_TYPES.get(path.suffix.lower()), file, context=context)
            if reader is None:
                return Credential("none")
            with reader:
                return _credential(json.loads(reader.json()))
    except c2pa.C2paError as error:
        if "NotFound" in type(error).__name__ or "NotSupported" in type(error).__name__:
            return Credential("none")
        return Credential("broken", problems=(str(error),))


def _credential(report: dict[str, Any]) -> Credential:
    manifest = report.get("manifests", {}).get(report.get("active_manifest", ""), {})
    actions = [
        action
        for assertion in manifest.get("assertions", ())
        if assertion.get("label", "").startswith("c2pa.actions")
        for action in assertion.get("data", {}).get("actions", ())
    ]
    tools = [info.get("name", "") for info in manifest.get("claim_generator_info", ())]
    state = str(report.get("validation_state", ""))
    faults = report.get("validation_results", {}).get("activeManifest", {}).get("failure", ())
    return Credential(
        state="valid" if state in ("Valid", "Trusted") else "broken",
        made_here=state == "Trusted",
        tool=tools[0] if tools else "",
        source_type=next((a["digitalSourceType"] for a in actions if "digitalSourceType" in a), ""),
        problems=tuple(fault.get("code", "") for fault in faults),
    )


def _manifest(tool: str, title: str, model: str, media_type: str) -> dict[str, Any]:
    name, _, version = tool.rpartition(" ")
    created = {
        "action": "c2pa.created",
        "digitalSourceType": SOURCE_TYPE,
        "softwareAgent": {"name": name, "version": version},
        "description": f"Speech made by the model {model}",
    }
    return {
        "title": title,
        "format": media_type,
        "claim_generator_info": [{"name": name, "version": version}],
        "assertions": [{"label": "c2pa.actions", "data": {"actions": [created]}}],
    }


def _identity(folder: Path) -> tuple[bytes, bytes]:
    """This machine's certificate chain and private key as PEM, made on first use."""
    if not folder.is_dir():
        _make_identity(folder)
    return (folder / _CHAIN).read_bytes(), (folder / _KEY).read_bytes()


def _make_identity(folder: Path) -> None:
    """A root that signs nothing but our one signing certificate; its own key is thrown away."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _certificate("VoxCPM Studio root", root_key.public_key(), "VoxCPM Studio root", root_key, authority=True)
    leaf = _certificate("VoxCPM Studio", key.public_key(), "VoxCPM Studio root", root_key, authority=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    made = folder.with_name(f".{uuid.uuid4().hex}")
    made.mkdir(parents=True, mode=0o700)
    try:
        for name, data in ((_ROOT, root), (_CHAIN, leaf + root), (_KEY, private)):
            (made / name).touch(mode=0o600)
            (made / name).write_bytes(data)
        with contextlib.suppress(OSError):  # another program has just made one: that one counts
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _certificate(subject: str, public_key: Any, issuer: str, issuer_key: Any, authority: bool) -> bytes:
    """One certificate as PEM with what the C2PA certificate profile asks for."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def name(common: str) -> x509.Name:
        organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "VoxCPM Studio (self-signed)")
        return x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, common)])

    uses = {field: False for field in ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")}
    uses |= {"encipher_only": False, "decipher_only": False, "crl_sign": authority}
    now = datetime.now(timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365 * _YEARS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=not authority, key_cert_sign=authority, **uses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
