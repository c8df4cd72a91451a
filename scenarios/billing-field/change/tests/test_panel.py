"""The panel shows the cost centre."""

import unittest

from billing.invoices import Invoice, Line
from billing.panel import panel


class PanelTest(unittest.TestCase):
    """What customers see."""

    def test_the_panel_shows_total_and_cost_centre(self) -> None:
        shown = panel(Invoice("2031", (Line("seats", 12_050),), cost_centre="R&D"))
        self.assertEqual(shown, {"number": "2031", "total": "120.50 EUR", "cost centre": "R&D"})

    def test_an_invoice_without_cost_centre_says_so(self) -> None:
        self.assertEqual(panel(Invoice("2032", ()))["cost centre"], "not given")
