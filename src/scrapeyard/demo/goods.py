"""What the practice shop sells: made in code, the same at every start."""

from msgspec import Struct

PER_CATEGORY = 40
PER_PAGE = 12
CURRENCY = "EUR"


class Category(Struct, frozen=True, kw_only=True):
    """A shelf of the shop."""

    slug: str
    name: str
    blurb: str
    hue: int
    """Colour of its pictures, in degrees."""


class Product(Struct, frozen=True, kw_only=True):
    """One thing to buy."""

    number: int
    """1, 2, 3 …: its page is /product/{number}."""
    sku: str
    title: str
    category: Category
    brand: str
    cents: int
    stock: int
    """0 means out of stock."""
    rating: float
    reviews: int
    material: str
    weight_grams: int

    @property
    def price(self) -> str:
        """As JSON-LD writes it: `1299.00`."""
        return f"{self.cents // 100}.{self.cents % 100:02d}"

    @property
    def shown_price(self) -> str:
        """As the page shows it: `€1,299.00`."""
        return f"€{self.cents // 100:,}.{self.cents % 100:02d}"

    @property
    def availability(self) -> str:
        """In words."""
        return "In stock" if self.stock else "Out of stock"

    @property
    def description(self) -> str:
        """Two sentences."""
        article = "An" if self.material[0] in "aeiou" else "A"
        noun = self.title.rpartition(" ")[2].lower()
        return (
            f"{article} {self.material} {noun} by {self.brand}, finished by hand and made to be repaired. "
            f"It weighs {self.weight_grams} g and comes in a box without plastic."
        )


_SHELVES = (
    ("lighting", "Lighting", "Lamps for desks, shelves and long evenings.", 42, "Lamp Lantern Sconce Pendant Torch"),
    ("kitchen", "Kitchen", "Tools that make a weekday dinner easier.", 14, "Kettle Board Grinder Bowl Skillet"),
    ("garden", "Garden", "For balconies, beds and borrowed plots.", 128, "Planter Trowel Sprinkler Trellis Spade"),
    ("office", "Office", "Quiet things for a tidy desk.", 212, "Notebook Tray Stand Clock Organiser"),
    ("outdoor", "Outdoor", "Light gear for days out of doors.", 176, "Flask Backpack Hammock Stove Compass"),
    ("toys", "Toys", "Blocks, puzzles and other serious matters.", 318, "Puzzle Train Kite Robot Top"),
)
CATEGORIES = tuple(Category(slug=slug, name=name, blurb=blurb, hue=hue) for slug, name, blurb, hue, _ in _SHELVES)
_NOUNS = {slug: nouns.split() for slug, _, _, _, nouns in _SHELVES}
_STYLES = ("Aurora", "Birch", "Cobalt", "Dune", "Ember", "Fjord", "Grove", "Harbour")
_BRANDS = ("Northwind", "Oak & Iron", "Kumo", "Fieldnote", "Lumen Works")
_MATERIALS = ("walnut", "steel", "ceramic", "aluminium", "bamboo", "brass", "cotton")


def make_products() -> tuple[Product, ...]:
    """All of them, by number."""
    return tuple(
        _make(shelf * PER_CATEGORY + place + 1, category, place)
        for shelf, category in enumerate(CATEGORIES)
        for place in range(PER_CATEGORY)
    )


def _make(number: int, category: Category, place: int) -> Product:
    nouns = _NOUNS[category.slug]
    mixed = number * 7919 % 1009
    return Product(
        number=number,
        sku=f"{category.slug[:3].upper()}-{number:04d}",
        title=f"{_STYLES[place // len(nouns)]} {nouns[place % len(nouns)]}",
        category=category,
        brand=_BRANDS[mixed % len(_BRANDS)],
        cents=mixed * 137 % 24_000 + 499,
        stock=0 if mixed % 9 == 0 else mixed % 60 + 1,
        rating=round(3 + mixed % 21 / 10, 1),
        reviews=mixed % 400 + 3,
        material=_MATERIALS[mixed % len(_MATERIALS)],
        weight_grams=mixed * 3 + 120,
    )
