-- Shared staging as others left it: the invoices table, one invoice, the revision it is at.
CREATE TABLE invoices (number VARCHAR(40) NOT NULL, total_cents INTEGER NOT NULL, PRIMARY KEY (number));
CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES ('0001_invoices');
INSERT INTO invoices VALUES ('2031', 15050);
