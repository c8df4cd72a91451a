// stripe-stateful-mock on the loopback interface alone; its own command listens on every one. Usage: PORT
"use strict";

const { createExpressApp } = require("stripe-stateful-mock");

createExpressApp().listen(Number(process.argv[2]), "127.0.0.1");
