# ruff: noqa: RUF001, SIM905 -- tables of characters and of words
"""Word tables of the reading: months, units, currencies, symbols, abbreviations, markup."""

from __future__ import annotations

MONTHS = {
    "Jan": "January", "Feb": "February", "Mar": "March", "Apr": "April", "May": "May",
    "Jun": "June", "Jul": "July", "Aug": "August", "Sep": "September", "Sept": "September",
    "Oct": "October", "Nov": "November", "Dec": "December",
}  # fmt: skip
MONTH_NAMES = tuple(dict.fromkeys(MONTHS.values()))
MONTH_WORDS = frozenset((*MONTHS, *MONTH_NAMES))

WEEKDAYS = {
    "Mon": "Monday", "Tue": "Tuesday", "Tues": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday",
    "Thur": "Thursday", "Thurs": "Thursday", "Fri": "Friday", "Sat": "Saturday", "Sun": "Sunday",
}  # fmt: skip

SYMBOLS = {
    "%": "percent", "&": "and", "+": "plus", "=": "equals", "@": "at", "#": "hash",
    "/": "slash", "\\": "backslash", "<": "less than", ">": "greater than",
    "^": "to the power of", "~": "about", "$": "dollar", "°": "degrees", "§": "section",
    "¶": "paragraph", "±": "plus or minus", "×": "times", "÷": "divided by", "©": "copyright",
    "→": "to", "⇒": "implies", "←": "from", "↔": "to and from", "≈": "about", "≠": "not equal to",
    "≤": "at most", "≥": "at least", "√": "root", "∞": "infinity", "∑": "sum", "∏": "product",
    "∆": "delta", "∂": "partial", "∫": "integral", "∈": "in", "∪": "union", "∩": "and",
    "‰": "per mille", "½": "one half", "¼": "one quarter", "¾": "three quarters",
    "⅓": "one third", "⅔": "two thirds", "⅛": "one eighth", "⅜": "three eighths",
    "⅝": "five eighths", "⅞": "seven eighths", "⅕": "one fifth", "⅖": "two fifths",
    "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "₩": "won", "₽": "ruble", "₿": "bitcoin",
    "¢": "cent", "₺": "lira", "₴": "hryvnia", "₫": "dong", "₪": "shekel", "฿": "baht",
    "♥": "heart", "❤": "heart", "✓": "check", "✔": "check", "★": "star", "☆": "star",
    "♯": "sharp", "♭": "flat", "♀": "female", "♂": "male",
}  # fmt: skip
"""Symbols that have a name when they are spoken at all."""

FRACTION_SIGNS = frozenset("½¼¾⅓⅔⅛⅜⅝⅞⅕⅖")

GREEK = {
    "α": ("alpha", "a"), "β": ("beta", "v"), "γ": ("gamma", "g"), "δ": ("delta", "d"),
    "ε": ("epsilon", "e"), "ζ": ("zeta", "z"), "η": ("eta", "i"), "θ": ("theta", "th"),
    "ι": ("iota", "i"), "κ": ("kappa", "k"), "λ": ("lambda", "l"), "μ": ("mu", "m"),
    "ν": ("nu", "n"), "ξ": ("ksi", "x"), "ο": ("omicron", "o"), "π": ("pi", "p"),
    "ρ": ("rho", "r"), "σ": ("sigma", "s"), "ς": ("sigma", "s"), "τ": ("tau", "t"),
    "υ": ("upsilon", "y"), "φ": ("phi", "f"), "χ": ("chi", "ch"), "ψ": ("psi", "ps"),
    "ω": ("omega", "o"),
}  # fmt: skip
"""Greek letters: the name of a letter that stands alone, and its sound in a Greek word."""

CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"), "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"), "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"), "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopek", "kopeks"), "₿": ("bitcoin", "bitcoins", "", ""),
    "¢": ("cent", "cents", "", ""), "₺": ("lira", "lira", "kurush", "kurush"),
    "₴": ("hryvnia", "hryvnias", "", ""), "₫": ("dong", "dong", "", ""),
    "₪": ("shekel", "shekels", "agora", "agorot"), "฿": ("baht", "baht", "satang", "satang"),
}  # fmt: skip
CURRENCY_CODES = {
    "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "US$": "$", "Rs": "₹", "Rs.": "₹",
}  # fmt: skip
DOLLARS = {"US$": "US dollars", "C$": "Canadian dollars", "CA$": "Canadian dollars",
           "A$": "Australian dollars", "AU$": "Australian dollars", "NZ$": "New Zealand dollars",
           "HK$": "Hong Kong dollars", "S$": "Singapore dollars",
           "R$": "Brazilian reais"}  # fmt: skip
CODE_WORDS = frozenset(("zip", "code", "postcode", "pin", "passcode"))
"""Words after which a number is read digit by digit."""
BEFORE_SECONDS = frozenset("for in after within every a than another last next wait".split())
"""Words after which "30s" is a time and no decade."""
BEFORE_LABEL = frozenset(
    "unit suite flat gate seat room bus route row apartment building platform exit block".split()
)
"""Words after which the "B" of "4B" is a letter and no billion."""
SCALES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million",
    "b": "billion", "B": "billion", "bn": "billion", "Bn": "billion", "T": "trillion",
    "tn": "trillion", "thousand": "thousand", "million": "million", "billion": "billion",
    "trillion": "trillion", "hundred": "hundred",
}  # fmt: skip
SCALE_WORDS = frozenset(("hundred", "thousand", "million", "billion", "trillion"))

_UNIT_STEMS = {
    "km": "kilometer", "cm": "centimeter", "mm": "millimeter", "m": "meter", "µm": "micrometer",
    "μm": "micrometer", "nm": "nanometer", "mi": "mile", "yd": "yard", "kg": "kilogram",
    "mg": "milligram", "g": "gram", "µg": "microgram", "μg": "microgram", "mcg": "microgram",
    "lb": "pound", "lbs": "pound", "oz": "ounce", "t": "ton", "ml": "milliliter",
    "mL": "milliliter", "L": "liter", "l": "liter", "dl": "deciliter", "cl": "centiliter",
    "s": "second", "sec": "second", "secs": "second", "min": "minute", "mins": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "ms": "millisecond", "µs": "microsecond",
    "μs": "microsecond", "ns": "nanosecond", "yr": "year", "yrs": "year", "wk": "week",
    "wks": "week", "KB": "kilobyte", "kB": "kilobyte", "kb": "kilobyte", "MB": "megabyte",
    "GB": "gigabyte", "TB": "terabyte", "PB": "petabyte", "KiB": "kibibyte", "MiB": "mebibyte",
    "GiB": "gibibyte", "W": "watt", "kW": "kilowatt", "MW": "megawatt", "GW": "gigawatt",
    "V": "volt", "kV": "kilovolt", "mV": "millivolt", "mA": "milliamp", "Ah": "amp hour",
    "mAh": "milliamp hour", "kWh": "kilowatt hour", "MWh": "megawatt hour", "J": "joule",
    "kJ": "kilojoule", "kcal": "kilocalorie", "cal": "calorie", "N": "newton", "Pa": "pascal",
    "kPa": "kilopascal", "hPa": "hectopascal", "mbar": "millibar", "dB": "decibel",
    "acre": "acre", "ha": "hectare",
    "Ω": "ohm", "kΩ": "kiloohm",
}  # fmt: skip
UNITS: dict[str, tuple[str, str]] = {
    **{unit: (stem, stem + "s") for unit, stem in _UNIT_STEMS.items()},
    "ft": ("foot", "feet"), "inch": ("inch", "inches"), "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"), "GHz": ("gigahertz", "gigahertz"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "kmh": ("kilometer per hour", "kilometers per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "bpm": ("beat per minute", "beats per minute"),
    "fps": ("frame per second", "frames per second"),
    "kbps": ("kilobit per second", "kilobits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "ppm": ("part per million", "parts per million"), "pct": ("percent", "percent"),
    "%": ("percent", "percent"),
    "‰": ("per mille", "per mille"), "°": ("degree", "degrees"),
    "°C": ("degree Celsius", "degrees Celsius"), "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "tbsp": ("tablespoon", "tablespoons"), "Tbsp": ("tablespoon", "tablespoons"),
    "tsp": ("teaspoon", "teaspoons"), "qt": ("quart", "quarts"), "gal": ("gallon", "gallons"),
    "sq": ("square", "square"), "mo": ("month", "months"),
    "kbit": ("kilobit", "kilobits"), "Mbit": ("megabit", "megabits"),
    "Gbit": ("gigabit", "gigabits"), "mmHg": ("millimeter of mercury", "millimeters of mercury"),
    "CAD": ("Canadian dollar", "Canadian dollars"), "CHF": ("Swiss franc", "Swiss francs"),
    "AUD": ("Australian dollar", "Australian dollars"), "CNY": ("yuan", "yuan"),
    "NZD": ("New Zealand dollar", "New Zealand dollars"), "PLN": ("zloty", "zlotys"),
    "SEK": ("Swedish krona", "Swedish kronor"), "NOK": ("Norwegian krone", "Norwegian kroner"),
    "DKK": ("Danish krone", "Danish kroner"), "BTC": ("bitcoin", "bitcoins"),
    "px": ("pixel", "pixels"), "°K": ("kelvin", "kelvin"),
    "¢": ("cent", "cents"), "x": ("times", "times"), "×": ("times", "times"),
}  # fmt: skip
GLUED_ONLY = frozenset(("x", "t", "N"))
"""Units that only count as such when they touch their number ("5x")."""

TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Mx": "Mix", "Dr": "Doctor",
    "Prof": "Professor", "St": "Saint", "Mt": "Mount", "Ft": "Fort", "Gen": "General",
    "Gov": "Governor", "Sen": "Senator", "Rep": "Representative", "Capt": "Captain",
    "Lt": "Lieutenant", "Col": "Colonel", "Sgt": "Sergeant", "Cmdr": "Commander",
    "Rev": "Reverend", "Hon": "Honorable", "Pres": "President", "Supt": "Superintendent",
    "Cpl": "Corporal", "Maj": "Major", "Adm": "Admiral", "Fr": "Father", "Msgr": "Monsignor",
    "Atty": "Attorney", "Messrs": "Messieurs", "Mme": "Madame",
}  # fmt: skip
"""Abbreviations before a name; their period never ends a sentence."""

STREETS = {"St": "Street", "Dr": "Drive", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
           "Ln": "Lane", "Hwy": "Highway", "Pkwy": "Parkway", "Ct": "Court", "Pl": "Place",
           "Sq": "Square", "Ste": "Suite"}  # fmt: skip
"""Abbreviations after a name."""

BEFORE_NUMBER = {
    "No": "number", "no": "number", "Nos": "numbers", "nos": "numbers", "Fig": "figure",
    "fig": "figure", "Figs": "figures", "Vol": "volume", "vol": "volume", "Ch": "chapter",
    "ch": "chapter", "p": "page", "pp": "pages", "Sec": "section", "sec": "section",
    "Eq": "equation", "eq": "equation", "Art": "article", "art": "article", "Ed": "edition",
    "ca": "circa", "c": "circa", "Mar": "March", "Sun": "Sunday", "Sat": "Saturday",
    "Apt": "apartment", "Pt": "part", "pt": "part",
    "Rm": "room", "Op": "opus", "op": "opus", "Rs": "rupees",
    "Ext": "extension", "ext": "extension",
}  # fmt: skip
"""Abbreviations that are other words, or unclear, unless a number follows."""

ABBREVIATIONS = {
    **{k: v for k, v in MONTHS.items() if k not in ("Mar", "May")},
    **{k: v for k, v in WEEKDAYS.items() if k not in ("Sat", "Sun")},
    "Jr": "Junior", "Sr": "Senior", "Apt": "apartment", "Bldg": "building", "Ltd": "Limited",
    "Inc": "Incorporated", "Corp": "Corporation", "Co": "Company", "Bros": "Brothers",
    "Dept": "Department", "dept": "department", "Univ": "University", "Assn": "Association",
    "Govt": "government", "govt": "government", "approx": "approximately", "est": "established",
    "vs": "versus", "etc": "etcetera", "al": "al", "cf": "compare", "ibid": "ibidem",
    "viz": "namely", "incl": "including", "excl": "excluding", "max": "maximum",
    "min": "minimum", "avg": "average", "misc": "miscellaneous", "temp": "temperature",
    "tel": "telephone", "Tel": "telephone", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
    "Hwy": "Highway", "Pkwy": "Parkway", "eds": "editors", "e.g": "for example",
    "E.g": "for example", "eg": "for example", "i.e": "that is", "I.e": "that is",
    "Ph.D": "~PHD", "a.k.a": "also known as", "w.r.t": "with respect to",
}  # fmt: skip
"""Abbreviations read in full wherever their period stands."""
MID_SENTENCE = frozenset(("vs", "e.g", "E.g", "eg", "i.e", "I.e", "cf", "approx", "viz", "a.k.a",
                          "w.r.t", "incl", "excl", "al"))  # fmt: skip
"""Abbreviations whose period never ends a sentence."""

WORDS = {
    "w/": "with", "w/o": "without", "b/c": "because", "and/or": "and or", "n/a": "~NA",
    "N/A": "~NA", "c/o": "care of", "IPv4": "~IPV four", "IPv6": "~IPV six",
    "24/7": "twenty four seven", "9/11": "nine eleven", "vs": "versus",
    "C++": "~C plus plus", "c++": "~C plus plus", "C#": "~C sharp", "F#": "~F sharp",
    "c#": "~C sharp", ".NET": "dot net",
    "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz",
    "AKA": "also known as", "aka": "also known as",
    "PhD": "~PHD", "221B": "two twenty one ~B", "221b": "two twenty one ~B",
    "911": "nine one one", "4K": "four ~K", "8K": "eight ~K", "'n": "and",
    "<3": "heart", ":D": "smiley",
    ":P": "smiley", ":p": "smiley", ":O": "smiley", ":o": "smiley", ":3": "smiley",
    ";D": "smiley", "XD": "smiley", "xD": "smiley", ":-D": "smiley", ":-P": "smiley",
    "wifi": "wi-fi", "WiFi": "wi-fi", "macOS": "mack ~OS", "GitHub": "git hub",
    "YouTube": "you tube", "OpenAI": "open ~AI", "ChatGPT": "chat ~GPT", "JSON": "jason",
    "json": "jason", "LaTeX": "lay tech", "SQLite": "~SQL light", "MySQL": "my ~SQL",
    "PostgreSQL": "post gress ~Q ~L", "am": "am",
}  # fmt: skip
"""Written words whose reading cannot be derived from their letters."""

RESPELLED = {
    "shh": "shush", "shhh": "shush", "grr": "gurr", "grrr": "gurr", "brr": "bur", "brrr": "bur",
    "résumé": "rezzumay", "résumés": "rezzumays", "protégé": "protizhay", "déjà": "day zha",
    "beyoncé": "bee yon say", "nguyen": "win", "siobhan": "shivawn",
    "nginx": "engine ~X", "cuda": "kooda", "qwen": "kwen", "kubernetes": "koober netties",
    "llama": "llama", "huawei": "wah way", "xiaomi": "shau mee", "postgres": "post gress",
    "omg": "~OMG", "idk": "~IDK", "imo": "~IMO", "imho": "~IMHO", "btw": "~BTW", "tbh": "~TBH",
    "fyi": "~FYI", "faq": "~FAQ", "tldr": "~TLDR",
}  # fmt: skip
"""Words in any case that the dictionary lacks or takes for others, spelled as they are said."""

SPOKEN_SUFFIXES = frozenset(
    "com org net gov mil info biz app dev edu zip bat bin exe dat cab tar tmp cat log doc".split()
)
"""Endings of domain and file names that are read as words; others are spelled when short."""

HTML_BLOCKS = frozenset(
    "address article aside blockquote body br dd div dl dt figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 head header hr html li main nav ol p pre section table tbody td th thead tr ul title "
    "speak break".split()
)
HTML_TAGS = HTML_BLOCKS | frozenset(
    "a abbr audio b bdi bdo big button cite code data del details dfn em font i iframe img input "
    "ins kbd label link mark meta nobr object option picture q s samp script select small source "
    "span strike strong style sub summary sup svg template textarea time tt u var video wbr "
    "prosody emphasis voice phoneme say-as think".split()
)

ROMAN_CARDINAL = frozenset(
    "chapter part act scene section volume book phase article war mark type level stage class "
    "grade bowl apollo gemini fantasy episode round rocky appendix figure table title vol ch pt "
    "fig".split()
)
"""Words after which a Roman numeral is a number ("Chapter IV", "World War II")."""
AFTER_ONE = frozenset(
    "error errors trial trials clinical study studies diabetes cancer disease and or".split()
)
"""Words before which the "I" of "phase I" is a number, though "the phase I like" has none."""
ROMAN_ORDINAL = frozenset(
    "Pope King Queen Henry Louis Edward George William Charles James Richard Elizabeth Napoleon "
    "Pius Benedict Leo Paul Ramses Frederick Philip Alexander Nicholas Peter Catherine Ivan "
    "Emmanuel Gustav Christian Ferdinand Otto Haakon".split()
)
"""Names after which a Roman numeral is a rank ("Henry VIII")."""

STARTERS = frozenset(
    "The A An It He She They We You I This That These Those There But And So In On At If When "
    "While As For However What Why How Who Where Then Now Also After Before Its His Her Their Our "
    "My Your Some Many Most No Yes Do Does Did Is Are Was Were Can Could Would Should Let Please "
    "Here Not One With".split()
)
"""Capitalised words that begin a sentence rather than continue a name after "U.S." and the like."""
