"""Settings of what is protected at rest: the master key."""

from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from scrapeyard.settings.section import Section


class SecretSettings(Section):
    """The master key, under which secrets in the database are encrypted. At most one of the first three."""

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

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = (self.master_key.get_secret_value(), self.master_key_file, self.kms_command)
        if sum(map(bool, given)) > 1:
            raise ValueError("give one of master_key, master_key_file and kms_command")
        return self
