# CPU image with the full stack. Build: docker build -t bt_acme .
# Run:   docker run --rm -it -v bt_acme_runs:/bt_acme/runs bt_acme \
#          python launch/run_r2d2.py --env=pong --preset=laptop --workdir=runs/pong
# The named volume bt_acme_runs belongs to the image's user and outlives the container. A
# directory that Docker creates for a bind mount would belong to root.
FROM python:3.10-slim-bookworm

WORKDIR /bt_acme

# Dependencies first, because they change less often than the code.
COPY requirements/full.txt requirements/full.txt
RUN python -m pip install --no-cache-dir -r requirements/full.txt

COPY setup.py pyproject.toml MANIFEST.in README.md ./
COPY requirements requirements
COPY bt_acme bt_acme
COPY launch launch
COPY experiments experiments
RUN python -m pip install --no-cache-dir --no-build-isolation --editable .

RUN useradd --create-home user && mkdir runs && chown -R user: .
USER user

CMD ["python", "-m", "experiments.demo"]
