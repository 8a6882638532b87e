"""What may be bought for a need: its own candidates, or the catalogue's by their class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.base.errors import UsageError
from assay.insight.sizing.cloud_ladder import cloud_ladder
from assay.insight.sizing.demand import demand_of
from assay.insight.sizing.group_ladder import group_ladders
from assay.insight.sizing.ladder import Ladder, RefusedLadder, model_of
from assay.insight.sizing.need import Need, Offer
from assay.insight.sizing.price_book import PriceBook, price_book_of
from assay.targets.arrays.model.model_file import ModelFile, catalogue_names, refuse_other_structures

CHOICES_MOST = 400
"""Choices of an array, RAID policy, paths and volumes; all of today's catalogue has some fifty."""
SOFTWARE_RAID = ("nvme-md", "nvme-md-parity")
"""Models of a server's software RAID, which take any drive of the catalogue."""


def ladders(need: Need, book: PriceBook | None = None) -> tuple[list[Ladder], list[RefusedLadder]]:
    """All that may be bought for a need, and what a rule leaves out before anything is asked.

    Raises
    ------
    UsageError
        A product, RAID policy, number of disks or paths, or a machine is unknown or impossible.
    """
    book = book or PriceBook(currency=need.currency, service_years=need.service_years)
    found: list[Ladder] = []
    refused: list[RefusedLadder] = []
    has_log = any(one.log_bytes for one in need.database) and need.rules.log_apart
    demand = demand_of(need, need.years)
    offers = offers_of(need)
    for offer in offers:
        model = model_of(offer.array)
        if model.structure == "cloud":
            made: Sequence[Ladder | RefusedLadder] = [cloud_ladder(need, offer, demand, book, need.instance)]
        else:
            refuse_other_structures(model, f"candidate {offer.array}")
            if is_black_box(model):
                raise UsageError(f"candidate {offer.array}: is a black box, whose disks are not known; give another")
            made = list(group_ladders(need, offer, book, has_log=has_log))
        for one in made:
            if len(found) + len(refused) == CHOICES_MOST:
                raise UsageError(
                    f"candidate: the need has more than {CHOICES_MOST} choices of an array, raid, paths and"
                    " volumes; give fewer"
                )
            if isinstance(one, RefusedLadder):
                refused.append(one)
            else:
                found.append(one)
    return found, refused


def offers_of(need: Need) -> Sequence[Offer]:
    """The candidates that a need states, or those of the catalogue of its classes."""
    if need.candidate:
        return need.candidate
    models = [(name, model_of(name)) for name in catalogue_names()]
    found = [
        Offer(array=name)
        for name, model in models
        if model.model_class in need.classes
        and (model.structure == "cloud" or (model.structure == "group" and model.model_class != "drive"))
        and not is_black_box(model)
    ]
    if "drive" in need.classes:
        drives = [name for name, model in models if is_bare_drive(model)]
        found += [Offer(array=shell, drive=drive) for shell in SOFTWARE_RAID for drive in drives]
    return found


def is_bare_drive(model: ModelFile) -> bool:
    """Whether a model is of one drive for servers: without power-loss protection it is a client's."""
    parameters = model.parameters
    return (
        model.model_class == "drive"
        and model.policies == ("0",)
        and model.disk_kind == "solid-state"
        and parameters["disks.count"].value == 1
        and bool(parameters["disk.power_loss_protection"].value)
    )


def is_black_box(model: ModelFile) -> bool:
    """Whether nothing is known of an array's disks."""
    capacity = model.parameters.get("disk.capacity")
    return capacity is not None and capacity.source.startswith("unknown")


def products(need: Need) -> list[str]:
    """Names that a price list may have: the catalogue's, and those of the need's candidates."""
    named = {name for offer in need.candidate for name in (offer.array, offer.drive) if name}
    return sorted({*catalogue_names(), *named})


def book_for(need: Need, prices: Path | None) -> PriceBook:
    """The prices for a need.

    Raises
    ------
    UsageError
        As `price_book_of`.
    """
    return price_book_of(
        currency=need.currency,
        region=need.region,
        service_years=need.service_years,
        prices=prices,
        products=products(need),
        has_own_costs=any(offer.cost is not None for offer in need.candidate),
    )
