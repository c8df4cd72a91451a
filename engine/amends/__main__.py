"""`python -m amends` is `amends`."""

from amends.surfaces.cli import main

if __name__ == "__main__":
    main()
