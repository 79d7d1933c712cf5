"""`python -m app.cli`, which is how `orthorank up` starts its children."""

from app.cli import main

if __name__ == "__main__":
    main()
