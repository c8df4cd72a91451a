"""Invoices add up."""

import unittest

from billing.invoices import Invoice, Line


class InvoiceTest(unittest.TestCase):
    """The total of an invoice."""

    def test_the_total_is_the_sum_of_all_lines(self) -> None:
        invoice = Invoice("2031", (Line("seats", 12_000), Line("support", 3_050)))
        self.assertEqual(invoice.total_cents, 15_050)

    def test_an_invoice_without_lines_is_for_nothing(self) -> None:
        self.assertEqual(Invoice("2032", ()).total_cents, 0)
