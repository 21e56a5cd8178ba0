"""Ends with 0 if the address answers 200. Trusts the authority beside this file. For health checks in containers."""

import ssl
import sys
import urllib.request
from pathlib import Path

authority = Path(__file__).with_name("ca.pem")
context = ssl.create_default_context(cafile=str(authority)) if authority.exists() else None
address = sys.argv[1]
secure = {"context": context} if address.startswith("https:") else {}
with urllib.request.urlopen(address, timeout=4, **secure) as answer:  # noqa: S310  the address is the operator's
    sys.exit(answer.status != 200)
