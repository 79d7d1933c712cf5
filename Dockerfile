FROM python:3.11-slim-bookworm

# LightGBM's wheel links to OpenMP's runtime, which slim images lack.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir uv==0.13.9 \
    && useradd --create-home orthorank

WORKDIR /srv/orthorank
COPY pyproject.toml uv.lock README.md ./
RUN uv sync --frozen --no-dev --compile-bytecode --no-install-project
COPY app app
COPY workers workers
COPY migrations migrations
RUN uv sync --frozen --no-dev --compile-bytecode

ENV PATH="/srv/orthorank/.venv/bin:$PATH"
USER orthorank
EXPOSE 8000
CMD ["orthorank", "api", "--host", "0.0.0.0"]
