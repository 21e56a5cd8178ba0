from dataclasses import dataclass, field


@dataclass
class Product:
    sku: str = ""
    name: str = ""
    price: float | None = None
    currency: str = ""
    tags: list[str] = field(default_factory=list)
