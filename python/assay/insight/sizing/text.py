"""What terminal and report say of an answer in the same words."""

from __future__ import annotations

from assay.base.units import count_of, format_bytes, format_iops, format_latency, format_share, format_years
from assay.document.elements import Tone
from assay.insight.sizing.answer import CHOICES, Choice, cost_text, purchase_of
from assay.insight.sizing.certainty import GAVE_UP, PROVIDERS
from assay.insight.sizing.sides import comparison_sentence
from assay.record.shapes.sizing import Candidate, Chosen, Sizing
from assay.targets.arrays.model.configuration import size_text

Rows = list[list[str]]

DASH = "-"


def probability_text(share: float) -> str:
    """A probability that claims no more than it can: neither 0 % nor 100 %.

    Examples
    --------
    >>> probability_text(0.93), probability_text(0.99999), probability_text(0.0001)
    ('93 %', 'more than 99 %', 'less than 1 %')
    """
    if share > 0.99:
        return "more than 99 %"
    return "less than 1 %" if share < 0.01 else f"{share * 100:.0f} %"


def loss_text(share: float | None) -> str:
    """A probability of loss; no model is right about less than one in a hundred thousand.

    Examples
    --------
    >>> loss_text(0.00021), loss_text(3e-9), loss_text(0.25)
    ('0.021 %', 'less than 0.001 %', '25 %')
    """
    if share is None:
        return DASH
    return f"{share * 100:.2g} %" if share >= 1e-5 else "less than 0.001 %"


def headline(answer: Sizing) -> str:
    """The purchase and what it rests on in a sentence, or what is missing."""
    best = purchase_of(answer["chosen"])
    if best is None:
        return nearest_sentence(answer)
    cost = f" for {spending_text(answer, best)}" if best["cost"] is not None else ""
    years = answer["years"]
    needed = "the need as it is" if not years else "the need of the next " + format_years(years).removeprefix("1 ")
    first, share = probability_text(best["probability"]), format_share(best["model_share"])
    off = f"a demand that may be off by {format_share(answer['demand']['spread'])}"
    if not is_founded(best):
        why = "whose own error was not worked out" if best["model_basis"] == GAVE_UP else "that was not calibrated"
        return (
            f"{best['label']}{cost} comes first by a model {why} (one standard deviation {share}) and"
            f" {off}: it would hold {needed} with a probability of {first}; measure one before you buy it."
        )
    basis = best["model_basis"].replace("; ", ", ")
    return (
        f"Buy {best['label']}{cost}: by a model that is {basis} (one standard deviation {share}) and {off}, it holds"
        f" {needed} with a probability of {first}."
    )


def spending_text(answer: Sizing, chosen: Chosen) -> str:
    """What a choice costs once, by the month, and over the service years."""
    once, month = chosen.get("once"), chosen.get("by_month")
    if once is None or not month:
        return cost_text(answer, chosen["cost"])
    first = f"{cost_text(answer, once)} and " if once else ""
    over = f"{cost_text(answer, chosen['cost'])} in {format_years(answer['service_years'])}"
    return f"{first}{cost_text(answer, month)} a month, {over}"


def is_founded(chosen: Chosen) -> bool:
    """Whether the model of a choice rests on more than data sheets: on measurements, or the provider's own limits."""
    return is_calibrated(chosen) or chosen["model_basis"] == PROVIDERS


def side_sentences(answer: Sizing) -> list[str]:
    """One's own drives beside the cloud, and why the two next are not bought."""
    market = answer.get("market")
    told = market["sides"] if market else None
    sentences = [] if told is None else [comparison_sentence(told, answer["currency"], answer["service_years"])]
    if market and market["next_best"]:
        sentences.append(f"Not bought: {' '.join(market['next_best'])}")
    return sentences


def is_calibrated(chosen: Chosen) -> bool:
    """Whether the model of a choice was calibrated to measurements."""
    return chosen["model_basis"].startswith("calibrated to ")


def headline_tone(answer: Sizing) -> Tone:
    """Good only where the purchase rests on measurements."""
    best = purchase_of(answer["chosen"])
    return "bad" if best is None else "good" if is_founded(best) else "warn"


def choice_text(answer: Sizing, choice: Choice) -> str:
    """Name of a choice; without costs nothing is the cheapest, whatever an older folder calls it."""
    is_by_disks = choice == "cheapest" and answer["cheapest_by"] != "cost"
    return "fewest disks" if is_by_disks else _CHOICE_WORDS.get(choice, choice.replace("_", " "))


_CHOICE_WORDS = {"on_premises": "best of your own", "cloud": "best of the cloud"}


def nearest_sentence(answer: Sizing) -> str:
    """What comes nearest where nothing holds the need."""
    nearest, given_up = answer["nearest"], answer.get("given_up")
    none = "No candidate that was asked holds the need" if given_up else "No candidate holds the need"
    if nearest is None:
        if given_up:
            return f"{none}: {given_up[0]}."
        return f"{none}: rules leave all of them out, see why."
    reason = max(nearest["reasons"], key=lambda one: one["share"] or 0.0)
    others = f"; not all were asked: {given_up[0]}" if given_up else ""
    return f"{none}; nearest comes {nearest['label']}: {reason['kind']}: {reason['text']}{others}."


def demand_rows(answer: Sizing) -> Rows:
    """Streams that storage is sized for, by the hours in which they coincide."""
    rows = []
    for number, phase in enumerate(answer["demand"]["sized_for"]["phases"], 1):
        for one in phase:
            order = "random" if one["random_share"] > 0.5 else "in order"
            rows.append(
                [
                    str(number), one["name"], one["role"], format_iops(one["iops"]), format_bytes(one["block_bytes"]),
                    f"{one['read_share'] * 100:.0f} %", order,
                ]
            )  # fmt: skip
    return rows


DEMAND_COLUMNS = ("peak", "what", "role", "IOPS", "block", "reads", "order")

CHOICE_COLUMNS = (
    "choice", "candidate", "disks", "cost", "a month", "rack units", "power", "usable", "full", "IOPS it holds",
    "latency", "probability", "lost in service", "worn out", "IOPS per unit", "TB per unit", "first to run out",
)  # fmt: skip


def choice_rows(answer: Sizing) -> Rows:
    """What is chosen."""
    rows = []
    for choice in CHOICES:
        one = answer["chosen"].get(choice)
        if one is None:
            continue
        rows.append(
            [
                choice_text(answer, choice), one["label"], str(one["disks"]) if one["disks"] else DASH,
                cost_text(answer, one["cost"]), cost_text(answer, one.get("by_month") or None),
                f"{one['rack_units']:g}" if one["rack_units"] is not None else DASH,
                f"{one['power_w']:,.0f} W" if one["power_w"] is not None else DASH,
                size_text(one["usable_bytes"]), format_share(one['fill']), _held_text(one),
                format_latency(one["latency_ns"]), probability_text(one["probability"]),
                loss_text(one["loss_probability"]), worn_out_text(one), _per_unit(one.get("iops_per_unit"), 1),
                _per_unit(one.get("bytes_per_unit"), 1e12), first_out(one),
            ]
        )  # fmt: skip
    return rows


CHOICES_SHOWN = ("choice", "candidate", "a month", "cost", "IOPS it holds", "latency", "worn out")


def shown_choices(answer: Sizing) -> tuple[tuple[str, ...], Rows]:
    """Columns and rows of what is chosen, as far as a page and a terminal have room."""
    places = [CHOICE_COLUMNS.index(name) for name in CHOICES_SHOWN]
    return CHOICES_SHOWN, [[row[place] for place in places] for row in choice_rows(answer)]


def _held_text(chosen: Chosen) -> str:
    return format_iops(chosen["iops_held"]) + (" or more" if chosen.get("holds_more") else "")


def _per_unit(value: float | None, unit: float) -> str:
    """A figure for each unit of currency a month."""
    return DASH if value is None else f"{value / unit:.3g}"


def worth_text(chosen: Chosen) -> str:
    """IOPS and terabytes for each unit of currency a month."""
    iops, size = chosen.get("iops_per_unit"), chosen.get("bytes_per_unit")
    if iops is None or size is None:
        return DASH
    return f"{iops:,.0f} IOPS, {size / 1e9:,.1f} GB"


def worn_out_text(chosen: Chosen) -> str:
    """The year in which its drives are worn out; unknown where nothing is known of their endurance."""
    told = chosen.get("endurance")
    if told is None:
        return "not known" if chosen["disks"] and chosen.get("side") else DASH
    year = told["worn_out_year"]
    return "not in 20 years" if year is None else f"year {year:g}"


def loss_sentences(answer: Sizing) -> list[str]:
    """What a lost drive takes of the data, and how drives wear: of what is bought, and the best of the other side."""
    chosen = answer["chosen"]
    told = []
    for size in (chosen.get("cheapest"), chosen.get("fewest_disks"), chosen.get("on_premises"), chosen.get("cloud")):
        lost = size.get("lost_drive") if size is not None else None
        if size is None or not lost:
            continue
        text = f"{size['label'].partition(':')[0]}: {lost}"
        if (wear := size.get("endurance")) is not None:
            text += (
                f". Its drives take {wear['drive_writes_a_day']:.2f} writes a day of the"
                f" {wear['rated_writes_a_day']:.2g} that they are made for, and are worn out: {worn_out_text(size)}"
            )
        told.append(f"{text}.")
    return [" ".join(dict.fromkeys(told))] if told else []


def price_sentence(answer: Sizing) -> str:
    """The list price of what is bought, of when, where and from whom; the names of the others; what none has."""
    market, best = answer.get("market"), purchase_of(answer["chosen"])
    prices = market["prices"] if market else []
    if not prices:
        return ""
    listed = []
    for one in sorted(prices, key=lambda one: best is None or one["name"] != best["array"]):
        when = f"{one['name']} of {one['dated']} in {one['region']}"
        is_bought = best is not None and one["name"] == best["array"]
        listed.append(f"{when}, {one['age']}, from {one['source'].partition(',')[0]}" if is_bought else when)
    told = f"List prices in {answer['currency']}: {'; '.join(listed)}."
    return f"{told} Machines, servers, traffic and discounts are not among them; --prices FILE has yours."


def first_out(chosen: Chosen) -> str:
    """The resource that runs out first, and when."""
    known = [(one["year"], one["resource"]) for one in chosen["growth"]["runs_out"] if one["year"] is not None]
    if not known:
        return "nothing in 20 years"
    year, resource = min(known, key=lambda one: one[0])
    return f"{resource}, year {year:g}"


def first_out_sentence(chosen: Chosen) -> str:
    """The same in a sentence."""
    if not any(one["year"] is not None for one in chosen["growth"]["runs_out"]):
        return "Nothing runs out within 20 years."
    return f"The first to run out is {first_out(chosen)}."


CANDIDATE_COLUMNS = ("candidate", "disks", "cost", "full", "latency", "holds", "why not")


def candidate_rows(answer: Sizing) -> Rows:
    """Every size that was looked at."""
    rows = []
    for one in answer["candidates"]:
        known = "disks" in one
        reasons = "; ".join(f"{reason['kind']}: {reason['text']}" for reason in one["reasons"])
        rows.append(
            [
                one["label"],
                str(one["disks"]) if known and one["disks"] else DASH,
                cost_text(answer, one.get("cost")) if known else DASH,
                format_share(one["fill"]) if known else DASH,
                format_latency(one["latency_ns"]) if known and one["latency_ns"] else DASH,
                "yes" if one["holds"] else "not known" if _is_unasked(one) else "no",
                reasons,
            ]
        )
    return rows


def _is_unasked(candidate: Candidate) -> bool:
    return any(reason["kind"] == "not asked" for reason in candidate["reasons"])


RULE_COLUMNS = ("rule", "effect here", "source")


def rule_rows(answer: Sizing) -> Rows:
    """The method's rules with what they did."""
    return [[one["rule"], one["effect"], one["source"]] for one in answer["rules"]]


ASSUMPTION_COLUMNS = ("assumption", "value", "from")


def assumption_rows(answer: Sizing) -> Rows:
    """What the answer hangs on."""
    return [[one["assumption"], one["value"], one["from"]] for one in answer["assumptions"]]


SENSITIVITY_COLUMNS = ("assumption", "as stated", "if it were", "then the purchase is", "changes")


def sensitivity_rows(answer: Sizing) -> Rows:
    """Which assumption changes the purchase."""
    return [
        [
            one["assumption"],
            one["stated"],
            one["to"],
            one["purchase"],
            "yes" if one["changes"] else "no" if one.get("known", True) else "not known",
        ]
        for one in answer["sensitivity"] or ()
    ]


def sensitivity_sentence(answer: Sizing) -> str:
    """The assumptions that change the purchase, in a sentence."""
    rows = answer["sensitivity"] or ()
    changing: dict[str, list[str]] = {}
    for one in rows:
        if one["changes"]:
            changing.setdefault(one["assumption"], []).append(one["to"])
    if not rows:
        return "What would change the purchase was not asked (--no-sensitivity)."
    unknown = sum(not one.get("known", True) for one in rows)
    if not changing and unknown:
        return f"No assumption that was asked changes the purchase within its range; {unknown} of {len(rows)} were not."
    costs = [cost for one in rows if (cost := one.get("cost")) is not None]
    spread = ""
    if costs and min(costs) < max(costs):
        spread = f" What is bought then costs {min(costs):,.0f} to {cost_text(answer, max(costs))}."
    if not changing:
        return f"No assumption changes the purchase within its range.{spread}"
    words = ", ".join(f"{name} ({', '.join(to)})" for name, to in changing.items())
    others = "no other assumption that was asked changes it" if unknown else "no other assumption changes it"
    return f"The purchase hangs on {words}; {others} within its range.{spread}"


GROWTH_COLUMNS = ("resource", "runs out in year")


def growth_rows(chosen: Chosen) -> Rows:
    """When each resource runs out."""
    return [
        [one["resource"], "not in 20 years" if one["year"] is None else f"{one['year']:g}"]
        for one in chosen["growth"]["runs_out"]
    ]


def server_sentences(answer: Sizing) -> list[str]:
    """Servers in sentences."""
    told = answer["servers"]
    if told is None:
        return []
    words = []
    one = told["databases"]
    if one is not None:
        words.append(
            f"{count_of(one['servers'], 'server')} of {one['cores_of_server']} cores for"
            f" {one['transactions_per_s']:,.0f} transactions/s, which keep {one['cores']:.1f} cores busy:"
            f" {format_share(one['cpu_share'])} of all, {format_share(one['cpu_limit'])} are allowed."
        )
        words.append(
            f"Memory: {format_bytes(one['memory_bytes'])} each: {one['memory']}."
            if one["memory_bytes"] is not None
            else f"Memory is not sized: {one['memory']}."
        )
    for mail in told["mail"]:
        words.append(
            f"{mail['name']}: {mail['mailboxes']:,} mailboxes take {count_of(mail['servers'], 'server')} of at most"
            f" {mail['mailboxes_per_server']:,} mailboxes (several virtual ones on a larger box), and"
            f" {format_bytes(mail['mailbox_bytes'])} of space each with white space and deleted items."
        )
    return words


VOLUME_COLUMNS = ("volume", "role", "IOPS", "reads", "mean I/O")


def volume_rows(answer: Sizing) -> Rows:
    """What was measured, by volume and then by role."""
    told = answer["measured"]
    if told is None:
        return []
    volumes = told["volumes"]
    roles = [one["role"] for one in volumes]
    # Of a single volume its role has nothing more to say.
    listed = [*volumes, *(one for role, one in (told["roles"] or {}).items() if roles.count(role) > 1)]
    named = [one["name"] for one in volumes]
    return [
        [
            one["name"] if number < len(named) else f"all of {one['name']}", one["role"], format_iops(one["iops"]),
            f"{one['read_share'] * 100:.0f} %", format_bytes(one["block_bytes"]),
        ]
        for number, one in enumerate(listed)
    ]  # fmt: skip
