"""PostgreSQL through psycopg: catalogue, sessions, and scratch databases made and dropped. No binary is needed."""
