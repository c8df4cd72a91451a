"""The billing panel, behind the flag `billing-panel`."""

from __future__ import annotations

from billing.invoices import Invoice


def panel(invoice: Invoice) -> dict[str, str]:
    """What the panel shows of an invoice."""
    total = f"{invoice.total_cents // 100}.{invoice.total_cents % 100:02d} EUR"
    return {"number": invoice.number, "total": total, "cost centre": invoice.cost_centre or "not given"}
