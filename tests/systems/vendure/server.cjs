// A Vendure shop with one product to sell. Usage: node server.cjs PORT, with DATABASE_URL of an empty PostgreSQL database
// and NODE_PATH at a node_modules with @vendure/core and pg. When it is ready it prints one line of JSON:
// {"url": the admin API, "token": a session of the administrator, "variant", "customer", "shipping", "stock"}.
"use strict";

const { bootstrap, defaultConfig, dummyPaymentHandler } = require("@vendure/core");

const PORT = Number(process.argv[2]);
const ADMIN = { identifier: "superadmin", password: "superadmin" };
const STOCK = 1000;

const quiet = () => {};
const STDERR = { error: (text) => console.error(text), warn: quiet, info: quiet, verbose: quiet, debug: quiet };

async function main() {
  const app = await bootstrap({
    ...defaultConfig,
    apiOptions: { hostname: "127.0.0.1", port: PORT, adminApiPath: "admin-api", shopApiPath: "shop-api" },
    authOptions: { tokenMethod: ["bearer"], superadminCredentials: ADMIN, requireVerification: false },
    dbConnectionOptions: { type: "postgres", url: process.env.DATABASE_URL, synchronize: true, logging: false },
    paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
    logger: STDERR, // standard output is for the one line
  });
  const url = `http://127.0.0.1:${PORT}/admin-api`;
  const seeded = await seed(new Admin(url));
  console.log(JSON.stringify({ url, ...seeded }));
  process.on("SIGTERM", () => app.close().then(() => process.exit(0)));
}

class Admin {
  constructor(url) {
    this.url = url;
    this.token = "";
  }

  async ask(query, variables = {}) {
    const headers = { "content-type": "application/json", authorization: this.token && `Bearer ${this.token}` };
    const answer = await fetch(this.url, { method: "POST", headers, body: JSON.stringify({ query, variables }) });
    this.token = answer.headers.get("vendure-auth-token") || this.token;
    const { data, errors } = await answer.json();
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  }
}

async function seed(admin) {
  await admin.ask("mutation ($identifier: String!, $password: String!) { login(username: $identifier, password: $password) { __typename } }", ADMIN);
  const { createCountry: country } = await admin.ask(
    'mutation { createCountry(input: {code: "DE", enabled: true, translations: [{languageCode: en, name: "Germany"}]}) { id } }');
  const { createZone: zone } = await admin.ask(
    'mutation ($member: ID!) { createZone(input: {name: "Europe", memberIds: [$member]}) { id } }', { member: country.id });
  const { createTaxCategory: tax } = await admin.ask('mutation { createTaxCategory(input: {name: "Standard", isDefault: true}) { id } }');
  const { channels } = await admin.ask("{ channels { items { id } } }");
  await admin.ask(
    "mutation ($id: ID!, $zone: ID!) { updateChannel(input: {id: $id, defaultTaxZoneId: $zone, defaultShippingZoneId: $zone}) { __typename } }",
    { id: channels.items[0].id, zone: zone.id });
  await admin.ask(
    'mutation ($tax: ID!, $zone: ID!) { createTaxRate(input: {name: "Zero", enabled: true, value: 0, categoryId: $tax, zoneId: $zone}) { id } }',
    { tax: tax.id, zone: zone.id });
  const { createShippingMethod: shipping } = await admin.ask(`mutation { createShippingMethod(input: {
    code: "parcel", fulfillmentHandler: "manual-fulfillment", translations: [{languageCode: en, name: "Parcel", description: ""}],
    checker: {code: "default-shipping-eligibility-checker", arguments: [{name: "orderMinimum", value: "0"}]},
    calculator: {code: "default-shipping-calculator", arguments: [
      {name: "rate", value: "500"}, {name: "includesTax", value: "auto"}, {name: "taxRate", value: "0"}]}}) { id } }`);
  await admin.ask(`mutation { createPaymentMethod(input: {code: "card", enabled: true,
    translations: [{languageCode: en, name: "Card", description: ""}],
    handler: {code: "dummy-payment-handler", arguments: [{name: "automaticSettle", value: "true"}]}}) { id } }`);
  const { createProduct: product } = await admin.ask(
    'mutation { createProduct(input: {enabled: true, translations: [{languageCode: en, name: "Bolt", slug: "bolt", description: ""}]}) { id } }');
  const { createProductVariants: variants } = await admin.ask(
    `mutation ($product: ID!, $tax: ID!, $stock: Int!) { createProductVariants(input: [{productId: $product, sku: "bolt", price: 1000,
      taxCategoryId: $tax, stockOnHand: $stock, trackInventory: TRUE, translations: [{languageCode: en, name: "Bolt"}]}]) { id } }`,
    { product: product.id, tax: tax.id, stock: STOCK });
  const { createCustomer: customer } = await admin.ask(
    'mutation { createCustomer(input: {firstName: "Maya", lastName: "Lind", emailAddress: "maya@example.com"}) { ... on Customer { id } } }');
  return { token: admin.token, variant: variants[0].id, customer: customer.id, shipping: shipping.id, stock: STOCK };
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
