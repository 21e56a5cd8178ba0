"""Settings of what is protected: the master key, and personal data."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.settings.section import Section


class SecretSettings(Section):
    """The master key, under which secrets in the database are encrypted (at most one of the first three), and whether
    content is."""

    master_key: SecretStr = Field(
        SecretStr(""),
        description="Master key, 32 bytes in base64 (`openssl rand -base64 32`); the same in every process. Empty: the "
        "file `master.key` in the data directory, created at the first start.",
    )
    master_key_file: Path | None = Field(
        None, description="File with the master key, mode 600; further lines are keys that were replaced."
    )
    kms_command: str = Field(
        "",
        description="Command of a key management service that wraps and unwraps data keys: called with `wrap` or "
        "`unwrap`, base64 on stdin and stdout.",
    )
    old_master_keys: tuple[SecretStr, ...] = Field(
        (), max_length=10, description="Master keys that were replaced, accepted until `secrets rotate-master` is done."
    )

    encrypt_content: bool = Field(
        False,
        description="Whether inputs, results, logs, errors and other content are encrypted in the database. Older rows "
        "stay as they are, and both are read either way. The same in every process.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = (self.master_key.get_secret_value(), self.master_key_file, self.kms_command)
        if sum(map(bool, given)) > 1:
            raise ValueError("give one of master_key, master_key_file and kms_command")
        return self


class MaskingSettings(Section):
    """Personal data in what runs leave."""

    kinds: tuple[Literal["email", "phone", "card", "national_id", "ip", "own"], ...] = Field(
        (), description="Kinds to mask where neither call, job nor manifest says (`policy.mask`); empty: none."
    )
    mask_as: Literal["mask", "hash"] = Field(
        "mask", description="mask: `[email]`; hash: `[email:3f9a1c2b7d10]`, the same for the same value."
    )
    places: tuple[Literal["results", "logs", "html", "artifacts", "exports"], ...] = Field(
        ("results", "logs", "html", "artifacts"),
        description="Where they are masked unless policy says (`policy.mask_in`). Exports follow results; `exports` "
        "without `results` masks them alone.",
    )
    patterns: tuple[str, ...] = Field(
        (),
        max_length=50,
        description="Patterns of the kind `own`, as `name=pattern`, in RE2's syntax and ASCII; needs the extra "
        "`masking`. In the environment as a JSON list.",
    )

    @field_validator("patterns")
    @classmethod
    def _named(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for each in patterns:
            name, _, pattern = each.partition("=")
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
                raise ValueError(f"{name[:40]!r} is no name: lower-case letters, digits and underscores")
            if not 0 < len(pattern) <= 1000 or not pattern.isascii():
                raise ValueError(f"{name}: a pattern has 1 to 1000 ASCII characters")
        return patterns
