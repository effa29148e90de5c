"""`python -m banditgrad`."""

from banditgrad.cli import main

if __name__ == "__main__":
    main()
